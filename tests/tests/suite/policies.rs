//! Quotas, bans, refunds and several checks over HTTP: on Redis and on the store in the service's own process.

use serde_json::{Value, json};
use sluicegate_tests::{Client, Redis, Service};
use sluicegate_wire::header;

/// Nothing comes back before a test is over; a year is longer than any window a test could straddle but one.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  three:
    limits: [{ name: day, capacity: 3, refill: 3, per: 1d, interval: true }]
  wide:
    limits: [{ name: day, capacity: 100, refill: 100, per: 1d, interval: true }]
  month:
    limits: [{ name: month, quota: 5, every: month, time_zone: Europe/Paris }]
  strict:
    limits: [{ name: day, capacity: 1, refill: 1, per: 1d, interval: true }]
    ban: { after: 3, within: 1h, for: 2h }
";

/// Runs a test on each store.
async fn on_both_stores(test: impl AsyncFn(&Client)) {
    let redis = Redis::start().await.unwrap();
    for store in [redis.url(), "memory://".to_owned()] {
        let service = Service::start(SERVICE, &store).await.unwrap();
        test(&Client::new(service.port()).unwrap()).await;
        assert_eq!(service.log().unwrap().contains("kept in this process"), store == "memory://");
    }
}

fn check(policy: &str, key: &str, cost: u64) -> Value {
    json!({ "policy": policy, "key": key, "cost": cost })
}

async fn remaining(client: &Client, policy: &str, key: &str) -> Value {
    client.take(policy, key, 0).await.unwrap().json()["results"][0]["remaining"].clone()
}

#[tokio::test]
async fn several_checks_take_together_or_not_at_all() {
    on_both_stores(async |client| {
        let both = json!({ "checks": [check("three", "a", 2), check("wide", "a", 1)] });
        assert_eq!(client.check(&both).await.unwrap().status, 200);
        let denied = client.check(&both).await.unwrap();
        assert_eq!(denied.status, 429);
        assert_eq!(
            denied.header(header::RATE_LIMIT).map(|value| value.starts_with(r#""three.day";r=1;t="#)),
            Some(true)
        );
        assert_eq!(remaining(client, "wide", "a").await, 99, "a denied call charged the other policy");
        // The same policy and key twice is one check of both costs.
        let twice = json!({ "checks": [check("three", "b", 2), check("three", "b", 2)] });
        assert_eq!(client.check(&twice).await.unwrap().status, 429);
        assert_eq!(remaining(client, "three", "b").await, 3);
    })
    .await;
}

#[tokio::test]
async fn shadow_checks_have_no_say_and_are_charged_on_their_own() {
    on_both_stores(async |client| {
        let mut shadow = check("three", "s", 3);
        shadow["shadow"] = true.into();
        let body = json!({ "checks": [shadow, check("wide", "s", 1)] });
        for (expected, left) in [(true, 99), (false, 98)] {
            let answer = client.check(&body).await.unwrap();
            assert_eq!(answer.status, 200, "{answer:?}");
            let results = answer.json()["results"].clone();
            assert_eq!((&results[0]["shadow"], &results[0]["allowed"]), (&json!(true), &json!(expected)));
            assert_eq!(remaining(client, "wide", "s").await, left);
        }
        // A denied enforced check takes nothing, and the shadow check beside it is charged all the same.
        let mut shadow = check("wide", "t", 1);
        shadow["shadow"] = true.into();
        let body = json!({ "checks": [check("three", "t", 4), shadow] });
        assert_eq!(client.check(&body).await.unwrap().status, 429);
        assert_eq!(remaining(client, "wide", "t").await, 99);
    })
    .await;
}

#[tokio::test]
async fn a_month_has_its_quota_and_a_refund_finds_its_window() {
    on_both_stores(async |client| {
        let taken = client.take("month", "m", 4).await.unwrap();
        let answer = taken.json();
        let days = answer["results"][0]["window_ms"].as_u64().unwrap() / 3_600_000 / 24;
        assert!((27..=31).contains(&days), "{answer}");
        assert_eq!(client.take("month", "m", 2).await.unwrap().status, 429);

        let refund = |charge: &Value| json!({ "checks": [check("month", "m", 2)], "charge": charge });
        let given = client.post("/v1/refund", &refund(&answer["charge"])).await.unwrap();
        assert_eq!((given.status, &given.json()["results"][0]["refunded"]), (200, &json!(2)), "{given:?}");
        assert_eq!(client.take("month", "m", 2).await.unwrap().status, 200);

        // Another window's charge gives nothing back, no charge or a foreign one is an error.
        let old = client.post("/v1/refund", &refund(&json!("1700000000000"))).await.unwrap();
        assert_eq!((old.status, &old.json()["results"][0]["refunded"]), (200, &json!(0)));
        for charge in [Value::Null, json!(""), json!("0"), json!("1.2"), json!("x")] {
            let refused = client.post("/v1/refund", &refund(&charge)).await.unwrap();
            assert_eq!(refused.status, 422, "{charge}: {refused:?}");
            assert!(refused.json()["detail"].as_str().unwrap().starts_with("charge: "), "{refused:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_refund_never_gives_more_than_was_taken() {
    on_both_stores(async |client| {
        assert_eq!(client.take("three", "r", 2).await.unwrap().status, 200);
        let refund = json!({ "checks": [check("three", "r", 100), check("three", "never-seen", 1)] });
        let answer = client.post("/v1/refund", &refund).await.unwrap().json();
        assert_eq!((&answer["results"][0]["refunded"], &answer["results"][1]["refunded"]), (&json!(2), &json!(0)));
        assert_eq!(client.take("three", "r", 3).await.unwrap().status, 200);
        assert_eq!(client.take("three", "r", 1).await.unwrap().status, 429);
    })
    .await;
}

#[tokio::test]
async fn many_denials_are_a_ban() {
    on_both_stores(async |client| {
        assert_eq!(client.take("strict", "b", 1).await.unwrap().status, 200);
        for (nth, reason, cache_ms) in [(1, "over_limit", 0), (2, "over_limit", 0), (3, "banned", 1), (4, "banned", 1)]
        {
            let denied = client.take("strict", "b", 1).await.unwrap();
            let body = denied.json();
            assert_eq!((denied.status, &body["results"][0]["reason"]), (429, &json!(reason)), "denial {nth}: {body}");
            // While denials are counted a proxy must not answer from memory.
            assert_eq!(body["deny_cache_ms"].as_u64().unwrap().min(1), cache_ms, "denial {nth}: {body}");
        }
        assert_eq!(client.take("strict", "b", 0).await.unwrap().json()["results"][0]["reason"], "banned");
        assert_eq!(client.take("strict", "another", 1).await.unwrap().status, 200);
    })
    .await;
}

#[tokio::test]
async fn a_refund_gives_back_only_what_was_charged() {
    on_both_stores(async |client| {
        assert_eq!(client.take("three", "x", 3).await.unwrap().status, 200);
        let mut shadow = check("three", "x", 1);
        shadow["shadow"] = true.into();
        let checks = json!([check("wide", "x", 1), shadow]);
        let answer = client.check(&json!({ "checks": checks })).await.unwrap();
        assert_eq!(answer.status, 200);
        // The shadow check was denied, so it took nothing: only the other is refunded.
        let charge = answer.json()["charge"].clone();
        let refund = client.post("/v1/refund", &json!({ "checks": checks, "charge": charge })).await.unwrap();
        let wide = json!([{ "policy": "wide", "limit": "day", "refunded": 1 }]);
        assert_eq!((refund.status, &refund.json()["results"]), (200, &wide), "{refund:?}");
        assert_eq!(client.take("three", "x", 1).await.unwrap().status, 429);
        // Without its charge nobody can tell.
        assert_eq!(client.post("/v1/refund", &json!({ "checks": checks })).await.unwrap().status, 422);
    })
    .await;
}

#[tokio::test]
async fn a_key_that_somebody_else_wrote_is_an_error_and_not_a_pass() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let mut connection = redis.connection().await.unwrap();
    for (key, command) in [("list", "LPUSH"), ("text", "SET")] {
        let bucket = format!("sg:{{three:{key}}}:day");
        redis::cmd(command).arg(&bucket).arg("garbage").exec_async(&mut connection).await.unwrap();
        redis::cmd("PEXPIRE").arg(&bucket).arg(600_000).exec_async(&mut connection).await.unwrap();
        let both = json!({ "checks": [check("wide", key, 1), check("three", key, 1)] });
        let refused = client.check(&both).await.unwrap();
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(refused.json()["detail"].as_str().unwrap().contains(&bucket), "{refused:?}");
        assert_eq!(remaining(&client, "wide", key).await, 100, "charged by a call that failed");
        // A shadow check on it has no say.
        let mut shadow = check("three", key, 1);
        shadow["shadow"] = true.into();
        let beside = client.check(&json!({ "checks": [check("wide", key, 1), shadow] })).await.unwrap();
        assert_eq!((beside.status, &beside.json()["results"][1]["allowed"]), (200, &json!(false)), "{beside:?}");
    }
}
