//! What operators ask and do, over HTTP: on Redis and on the store in the service's own process.

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Redis, Service};

const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  api:
    limits:
      - { name: day, capacity: 3, refill: 3, per: 1d, interval: true }
      - { name: month, quota: 5, every: month }
    overrides: true
  login:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }]
    ban: { after: 3, within: 1h, for: 2h }
";

struct Operator {
    data: Client,
    admin: Client,
}

impl Operator {
    /// A question that is answered.
    async fn ask(&self, path: &str, body: Value) -> Value {
        let answer = self.admin.post(path, &body).await.unwrap();
        assert_eq!(answer.status, 200, "{path} {body}: {answer:?}");
        answer.json()
    }

    async fn take(&self, policy: &str, key: &str, cost: u64) -> u16 {
        self.data.take(policy, key, cost).await.unwrap().status
    }
}

/// Runs a test on each store.
async fn on_both_stores(test: impl AsyncFn(&Operator)) {
    let redis = Redis::start().await.unwrap();
    for store in [redis.url(), "memory://".to_owned()] {
        let service = Service::start(SERVICE, &store).await.unwrap();
        let (data, admin) = (Client::new(service.port()).unwrap(), Client::new(service.admin_port()).unwrap());
        test(&Operator { data, admin }).await;
    }
}

fn check_refused(answer: &Answer, status: u16, detail: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    let found = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(found.starts_with(detail), "{found}");
}

#[tokio::test]
async fn a_peek_shows_what_is_left_and_takes_nothing() {
    on_both_stores(async |operator| {
        assert_eq!(operator.take("api", "p", 2).await, 200);
        for _ in 0..3 {
            let peek = operator.ask("/v1/peek", json!({ "policy": "api", "key": "p" })).await;
            assert_eq!((&peek["subject"], &peek["ban"], &peek["override"]), (&json!("p"), &Value::Null, &Value::Null));
            let left: Vec<_> =
                peek["limits"].as_array().unwrap().iter().map(|limit| limit["remaining"].clone()).collect();
            assert_eq!(left, [1, 3]);
            assert_eq!(peek["limits"][0]["capacity"], 3);
            let next_ms = peek["limits"][0]["next_ms"].as_u64().unwrap();
            assert!((86_000_000..=86_400_000).contains(&next_ms), "{peek}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_key_of_every_form_is_the_subject_of_a_check() {
    on_both_stores(async |operator| {
        for (key, encoded) in [
            (json!("a b"), "a%20b"),
            (json!(["u1", { "b64": "/w==" }]), "u1+%FF"),
            (json!([{ "secret": "abc" }]), "#ba7816bf8f01cfea414140de5dae2223"),
        ] {
            let check = json!({ "checks": [{ "policy": "api", "key": key, "cost": 3 }] });
            assert_eq!(operator.data.check(&check).await.unwrap().status, 200);
            for key in [key, json!({ "encoded": encoded })] {
                let peek = operator.ask("/v1/peek", json!({ "policy": "api", "key": key })).await;
                assert_eq!((&peek["subject"], &peek["limits"][0]["remaining"]), (&json!(encoded), &json!(0)));
            }
        }
    })
    .await;
}

#[tokio::test]
async fn a_reset_and_a_grant_hold_at_the_next_check() {
    on_both_stores(async |operator| {
        assert_eq!(operator.take("api", "r", 3).await, 200);
        let granted = operator.ask("/v1/grant", json!({ "policy": "api", "key": "r", "tokens": 100 })).await;
        assert_eq!(granted["limits"], json!([{ "limit": "day", "granted": 3 }, { "limit": "month", "granted": 3 }]));
        assert_eq!(operator.take("api", "r", 3).await, 200);
        assert_eq!(operator.take("api", "r", 1).await, 429);
        let reset = operator.ask("/v1/reset", json!({ "policy": "api", "key": "r" })).await;
        assert_eq!(reset, json!({ "policy": "api", "subject": "r", "removed": 2 }));
        assert_eq!(operator.take("api", "r", 3).await, 200);
    })
    .await;
}

#[tokio::test]
async fn a_ban_holds_until_it_is_lifted() {
    on_both_stores(async |operator| {
        let who = json!({ "policy": "login", "key": "b" });
        let ban = operator.ask("/v1/ban", who.clone()).await;
        assert_eq!(ban["for_ms"], 7_200_000);
        let denied = operator.data.take("login", "b", 1).await.unwrap();
        assert_eq!((denied.status, &denied.json()["results"][0]["reason"]), (429, &json!("banned")));
        let mut longer = who.clone();
        longer["for_ms"] = json!(86_400_000);
        operator.ask("/v1/ban", longer).await;
        let peek = operator.ask("/v1/peek", who.clone()).await;
        let left_ms = peek["ban"]["left_ms"].as_u64().unwrap();
        assert!(peek["ban"]["banned"] == true && (86_300_000..=86_400_000).contains(&left_ms), "{peek}");
        assert_eq!(operator.ask("/v1/unban", who.clone()).await["lifted"], true);
        assert_eq!(operator.ask("/v1/unban", who).await["lifted"], false);
        assert_eq!(operator.take("login", "b", 2).await, 200);
        let refused = operator.admin.post("/v1/ban", &json!({ "policy": "api", "key": "b" })).await.unwrap();
        check_refused(&refused, 409, "policy: policy api has no ban");
    })
    .await;
}

#[tokio::test]
async fn an_override_holds_from_the_next_check_to_its_end() {
    on_both_stores(async |operator| {
        let own = json!({
            "policy": "api", "key": "o", "end": { "for_ms": 86_400_000 },
            "limits": { "day": { "capacity": 9 }, "month": { "quota": 7 } },
        });
        assert_eq!(operator.take("api", "o", 3).await, 200);
        assert_eq!(operator.admin.put("/v1/override", &own).await.unwrap().status, 200);
        let peek = operator.ask("/v1/peek", json!({ "policy": "api", "key": "o" })).await;
        assert_eq!((&peek["limits"][0]["capacity"], &peek["limits"][1]["remaining"]), (&json!(9), &json!(4)));
        let path = "/v1/override?policy=api&subject=o";
        let got = operator.admin.get(path).await.unwrap().json()["override"].clone();
        assert_eq!(
            got["limits"],
            json!({
                "day": { "kind": "bucket", "capacity": 9, "refill": 3, "per_ms": 86_400_000, "interval": true },
                "month": { "kind": "quota", "quota": 7 },
            })
        );
        assert!(got["keep"] == false && got["left_ms"].as_u64().unwrap() > 86_000_000, "{got}");
        // A reset keeps it unless told otherwise.
        operator.ask("/v1/reset", json!({ "policy": "api", "key": "o" })).await;
        assert_eq!(operator.take("api", "o", 7).await, 200);
        let removed = operator.admin.send(Method::DELETE, path, &[]).await.unwrap();
        assert_eq!((removed.status, &removed.json()["removed"]), (200, &json!(true)));
        check_refused(&operator.admin.get(path).await.unwrap(), 404, "this subject has no override");
        assert_eq!(operator.take("api", "o", 1).await, 429);
    })
    .await;
}

#[tokio::test]
async fn what_can_not_be_an_override_is_refused_with_its_field() {
    let service = Service::start(SERVICE, "memory://").await.unwrap();
    let admin = Client::new(service.admin_port()).unwrap();
    let good = json!({ "policy": "api", "key": "o", "end": "keep", "limits": { "day": { "capacity": 9 } } });
    for (field, value, status, detail) in [
        ("policy", json!("nobody"), 404, "policy: there is no policy \"nobody\""),
        ("policy", json!("login"), 409, "policy: policy login does not allow overrides; set overrides: true"),
        ("key", json!([]), 422, "key: a key has at least one part"),
        ("key", json!({ "encoded": "%41" }), 422, "key: encoded: not an encoded subject"),
        (
            "limits",
            json!({}),
            422,
            "limits: names no limit; give at least one of those that the policy has: day, month",
        ),
        ("limits", json!({ "dya": {} }), 409, "limits.dya: the policy has no such limit; it has: day, month"),
        ("limits", json!({ "day": { "quota": 1 } }), 409, "limits.day.quota: day is a bucket"),
        ("limits", json!({ "month": { "refill": 1 } }), 409, "limits.month: month is a quota"),
        ("limits", json!({ "day": { "capacity": 0 } }), 409, "limits.day: capacity is 0"),
        ("limits", json!({ "day": { "size": 1 } }), 422, "limits.day.size: unknown field"),
        ("end", json!({ "for_ms": 0 }), 422, "end.for_ms: must be from 1 ms to 366 days"),
        ("end", json!({ "until": "soon" }), 422, "end.until: is not a time; use RFC 3339"),
        ("end", json!({ "until": "2001-01-01T00:00:00Z" }), 409, "end.until: must be within the next 366 days"),
        ("for", json!(1), 422, "for: unknown field"),
    ] {
        let mut body = good.clone();
        body[field] = value;
        check_refused(&admin.put("/v1/override", &body).await.unwrap(), status, detail);
    }
    assert_eq!(admin.put("/v1/override", &good).await.unwrap().status, 200);
}

#[tokio::test]
async fn top_ranks_subjects_by_what_became_of_their_checks() {
    on_both_stores(async |operator| {
        for (key, takes) in [("often", 4), ("seldom", 1)] {
            for nth in 0..takes {
                assert_eq!(operator.take("login", key, 1).await, if nth < 2 { 200 } else { 429 });
            }
        }
        // Looking is not counted.
        operator.take("login", "looks", 0).await;
        for (by, expected) in [("takes", json!([["often", 2], ["seldom", 1]])), ("denials", json!([["often", 2]]))] {
            let top = operator.admin.get(&format!("/v1/top?policy=login&by={by}")).await.unwrap().json();
            let subjects = top["policies"][0]["subjects"].as_array().unwrap().iter();
            let found: Vec<_> = subjects.map(|subject| json!([subject["subject"], subject["count"]])).collect();
            assert_eq!(json!(found), expected, "{top}");
        }
        let all = operator.admin.get("/v1/top?n=1").await.unwrap().json();
        assert_eq!((&all["by"], all["policies"].as_array().unwrap().len()), (&json!("takes"), 2));
        check_refused(&operator.admin.get("/v1/top?n=0").await.unwrap(), 422, "n: must be from 1 to 100");
    })
    .await;
}

#[tokio::test]
async fn a_secret_shows_nowhere_but_as_a_digest() {
    const SECRET: &str = "correct-horse";
    let service = Service::start(SERVICE, "memory://").await.unwrap();
    let (data, admin) = (Client::new(service.port()).unwrap(), Client::new(service.admin_port()).unwrap());
    let key = json!([{ "secret": SECRET }]);
    data.check(&json!({ "checks": [{ "policy": "api", "key": key }] })).await.unwrap();
    let mut seen = String::new();
    for path in ["/v1/peek", "/v1/reset", "/v1/ban"] {
        let answer = admin.post(path, &json!({ "policy": "api", "key": key })).await.unwrap();
        seen.push_str(&String::from_utf8(answer.body).unwrap());
    }
    let wrong = json!({ "policy": "api", "key": [{ "secret": SECRET }, 1], "tokens": 1 });
    let wrong = admin.post("/v1/grant", &wrong).await.unwrap();
    seen.push_str(&String::from_utf8(wrong.body).unwrap());
    seen.push_str(&String::from_utf8(admin.get("/v1/top").await.unwrap().body).unwrap());
    seen.push_str(&service.log().unwrap());
    assert!(!seen.contains(SECRET), "{seen}");
    assert!(seen.contains("\"subject\":\"#"), "{seen}");
}
