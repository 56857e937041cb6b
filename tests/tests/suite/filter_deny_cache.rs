//! The deny cache: who was denied a moment ago is told so again without a callout.

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Reply, Stack, StandIn, Upstream};
use sluicegate_wire::header;

use crate::verdict::assert_counted;

fn plugin() -> Value {
    let limit =
        |cost: u64| json!([{ "policy": "two", "key": [{ "header": "x-api-key", "secret": true }], "cost": cost }]);
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [
            { "name": "dear", "match": { "path": { "exact": "/dear" } }, "limits": limit(2), "on_failure": "closed" },
            { "name": "cheap", "limits": limit(1), "on_failure": "closed" },
        ],
        "deny_cache": { "max_life": "1h" },
    })
}

fn denied(deny_cache_ms: u64) -> Reply {
    let result = json!({
        "check": 0, "policy": "two", "limit": "day", "allowed": false, "reason": "over_limit", "capacity": 2,
        "window_ms": 86_400_000, "remaining": 0, "retry_after_ms": 40_000_000, "next_ms": 40_000_000,
        "full_ms": 80_000_000,
    });
    let body = json!({ "allowed": false, "results": [result], "deny_cache_ms": deny_cache_ms }).to_string();
    Reply::answer(429, body).marked()
}

#[tokio::test]
async fn a_hit_makes_no_callout() {
    let service = StandIn::start(denied(40_000_000)).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin())).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    let get = async |path: &str, key: &str| client.send(Method::GET, path, &[("x-api-key", key)]).await.unwrap();

    let first = get("/", "a").await;
    assert_eq!((first.status, first.reason()), (429, Some("over_limit")), "{first:?}");
    assert_eq!(service.take_asked().len(), 1);
    for _ in 0..10 {
        let again = get("/", "a").await;
        assert_eq!((again.status, &again.body), (first.status, &first.body), "{again:?}");
        for name in [header::REASON, header::RATE_LIMIT_POLICY, "content-type"] {
            assert_eq!(again.header(name), first.header(name), "{name}");
        }
        let wait: u64 = again.header(header::RETRY_AFTER).unwrap().parse().unwrap();
        assert!((39_900..=40_000).contains(&wait), "{wait} s");
    }
    assert!(service.take_asked().is_empty());
    assert_eq!(envoy.metric(r#"sluicegate_deny_cache_hits_total{rule="cheap"}"#).await.unwrap(), 10);

    // Other questions are asked.
    get("/", "b").await;
    get("/dear", "a").await;
    assert_eq!(service.take_asked().len(), 2);

    // An answer that must not be kept.
    service.reply_with(denied(0));
    for _ in 0..3 {
        get("/", "c").await;
    }
    assert_eq!(service.take_asked().len(), 3);
}

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  two:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }]
";

#[tokio::test]
async fn a_cheaper_request_passes_where_a_dearer_one_was_denied() {
    let stack = Stack::start(SERVICE, &plugin()).await.unwrap();
    let client = stack.client().unwrap();
    let get = async |path: &str| client.send(Method::GET, path, &[("x-api-key", "a")]).await.unwrap();
    assert_counted(&get("/").await);
    for _ in 0..2 {
        assert_eq!(get("/dear").await.reason(), Some("over_limit"));
    }
    assert_counted(&get("/").await);
    assert_eq!(get("/").await.reason(), Some("over_limit"));
    assert_eq!(stack.envoy.metric(r#"sluicegate_deny_cache_hits_total{rule="dear"}"#).await.unwrap(), 1);
}
