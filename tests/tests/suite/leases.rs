//! `POST /v1/lease` over HTTP: on Redis and on the store in the service's own process.

use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Redis, Service};
use sluicegate_wire::header::MARKER;

/// Nothing comes back before a test is over.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  hundred:
    limits: [{ name: day, capacity: 100, refill: 100, per: 1d, interval: true }]
  own:
    limits: [{ name: day, capacity: 100, refill: 100, per: 1d }]
    overrides: true
  month:
    limits: [{ name: month, quota: 5, every: month }]
  two:
    limits: [{ name: a, capacity: 5, refill: 5, per: 1d }, { name: b, capacity: 9, refill: 9, per: 1d }]
  strict:
    limits: [{ name: day, capacity: 5, refill: 5, per: 1d }]
    ban: { after: 3, within: 1h, for: 2h }
";

fn lease(policy: &str, key: &str, max: u64) -> Value {
    json!({ "policy": policy, "key": key, "max": max, "for_ms": 2000 })
}

async fn ask(client: &Client, body: &Value) -> Answer {
    let answer = client.post("/v1/lease", body).await.unwrap();
    assert!(answer.header(MARKER).is_some(), "{answer:?}");
    answer
}

async fn granted(client: &Client, key: &str, max: u64) -> Value {
    let answer = ask(client, &lease("hundred", key, max)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()
}

async fn left(client: &Client, policy: &str, key: &str) -> Value {
    client.take(policy, key, 0).await.unwrap().json()["results"][0]["remaining"].clone()
}

async fn on_both_stores(test: impl AsyncFn(&Client, &Client)) {
    let redis = Redis::start().await.unwrap();
    for store in [redis.url(), "memory://".to_owned()] {
        let service = Service::start(SERVICE, &store).await.unwrap();
        test(&Client::new(service.port()).unwrap(), &Client::new(service.admin_port()).unwrap()).await;
    }
    redis.assert_all_keys_expire();
}

#[tokio::test]
async fn a_lease_takes_as_many_as_there_are() {
    on_both_stores(async |client, _| {
        let all = granted(client, "a", 60).await;
        assert_eq!((&all["granted"], &all["deny_cache_ms"]), (&json!(60), &Value::Null), "{all}");
        let result = &all["result"];
        assert_eq!(
            (&result["limit"], &result["reason"], &result["remaining"], &result["capacity"], &result["window_ms"]),
            (&json!("day"), &json!("ok"), &json!(40), &json!(100), &json!(86_400_000))
        );
        assert_eq!(left(client, "hundred", "a").await, 40);
        let rest = granted(client, "a", 60).await;
        assert_eq!((&rest["granted"], &rest["result"]["remaining"]), (&json!(40), &json!(0)), "{rest}");
        let none = granted(client, "a", 60).await;
        assert_eq!((&none["granted"], &none["result"]["reason"]), (&json!(0), &json!("over_limit")), "{none}");
        let wait_ms = none["result"]["retry_after_ms"].as_u64().unwrap();
        assert!(wait_ms > 80_000_000, "{none}");
        assert_eq!((&none["deny_cache_ms"], &none["result"]["next_ms"]), (&json!(wait_ms), &json!(wait_ms)));
    })
    .await;
}

#[tokio::test]
async fn a_refund_gives_back_what_was_leased() {
    on_both_stores(async |client, _| {
        assert_eq!(granted(client, "r", 60).await["granted"], 60);
        let refund = json!({ "checks": [{ "policy": "hundred", "key": "r", "cost": 25 }] });
        let given = client.post("/v1/refund", &refund).await.unwrap().json();
        assert_eq!(given["results"], json!([{ "policy": "hundred", "limit": "day", "refunded": 25 }]));
        assert_eq!(left(client, "hundred", "r").await, 65);
    })
    .await;
}

#[tokio::test]
async fn a_subject_with_numbers_of_its_own_leases_by_them() {
    on_both_stores(async |client, admin| {
        let own = json!({ "policy": "own", "key": "o", "limits": { "day": { "capacity": 7 } }, "end": "keep" });
        assert_eq!(admin.put("/v1/override", &own).await.unwrap().status, 200);
        let answer = ask(client, &lease("own", "o", 50)).await.json();
        assert_eq!((&answer["granted"], &answer["result"]["capacity"]), (&json!(7), &json!(7)), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn what_can_not_be_leased_is_refused_with_the_reason() {
    on_both_stores(async |client, _| {
        let check = async |body: Value, status: u16, reason: &str| {
            let answer = ask(client, &body).await;
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            assert_eq!(answer.status, status, "{body}: {detail}");
            assert!(detail.starts_with(reason), "{body}: {detail}");
        };
        check(lease("none", "k", 1), 404, "policy: there is no policy \"none\"").await;
        check(lease("strict", "k", 1), 422, "policy: strict has a ban, which must see every request; take").await;
        check(lease("two", "k", 1), 422, "policy: two has several limits, and a lease is of one; take").await;
        check(lease("month", "k", 1), 422, "policy: month counts by the calendar").await;
        for max in [json!(0), json!(-1), json!(100_001), json!(1.5)] {
            let mut body = lease("hundred", "k", 1);
            body["max"] = max;
            check(body, 422, "max: must be a whole number from 1 to 100000").await;
        }
        for for_ms in [0, 60_001] {
            let mut body = lease("hundred", "k", 1);
            body["for_ms"] = json!(for_ms);
            check(body, 422, "for_ms: must be a whole number from 1 to 60000").await;
        }
        check(json!({ "policy": "hundred", "key": "k", "for_ms": 1 }), 422, "missing field `max`").await;
        check(json!([]), 422, "the body is a list").await;
        assert_eq!(left(client, "hundred", "k").await, 100);
    })
    .await;
}

#[tokio::test]
async fn the_callers_deadline_holds() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let headers = [("x-sluicegate-timeout-ms", "0")];
    let body = lease("hundred", "d", 5).to_string();
    let late = client.send_with_body(reqwest::Method::POST, "/v1/lease", &headers, &body).await.unwrap();
    assert_eq!(late.status, 503, "{late:?}");
    assert_eq!(left(&client, "hundred", "d").await, 100);
}

#[tokio::test]
async fn where_refunds_are_off_there_are_no_leases() {
    let config = format!("refunds: false\n{SERVICE}");
    let service = Service::start(&config, "memory://").await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let refused = ask(&client, &lease("hundred", "k", 5)).await;
    assert_eq!(refused.status, 403, "{refused:?}");
    assert!(refused.json()["detail"].as_str().unwrap().starts_with("leases are off, as refunds are"), "{refused:?}");
}

#[tokio::test]
async fn leased_tokens_count_for_the_top_subjects_and_in_metrics_of_their_own() {
    on_both_stores(async |client, admin| {
        for (max, expected) in [(60, 60), (60, 40), (60, 0)] {
            assert_eq!(granted(client, "hot", max).await["granted"], expected);
        }
        let top = admin.get("/v1/top?policy=hundred").await.unwrap().json();
        assert!(top.to_string().contains(r#""count":100"#), "{top}");
        let metrics = String::from_utf8(admin.get("/metrics").await.unwrap().body).unwrap();
        for line in [
            r#"sluicegate_lease_requests_total{policy="hundred",verdict="allowed"} 2"#,
            r#"sluicegate_lease_requests_total{policy="hundred",verdict="over_limit"} 1"#,
            r#"sluicegate_lease_tokens_total{policy="hundred"} 100"#,
            r#"sluicegate_checks_total{policy="hundred",verdict="allowed"} 0"#,
        ] {
            assert!(metrics.lines().any(|found| found == line), "{line} is not in {metrics}");
        }
    })
    .await;
}
