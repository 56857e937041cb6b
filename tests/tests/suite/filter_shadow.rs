//! Shadow: judged and marked, never rejected.

use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Reply, Stack, StandIn, Upstream};
use sluicegate_wire::header;

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  one:
    limits: [{ name: small, capacity: 1, refill: 1, per: 1d, interval: true }]
  three:
    limits: [{ name: large, capacity: 3, refill: 3, per: 1d, interval: true }]
";

fn plugin(limits: &Value) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{ "name": "all", "limits": limits, "on_failure": "closed" }],
    })
}

#[tokio::test]
async fn an_exhausted_shadow_limit_marks_and_the_enforced_one_beside_it_decides() {
    let limits = json!([
        { "policy": "one", "key": ["client_ip"], "shadow": true },
        { "policy": "three", "key": ["client_ip"] },
    ]);
    let stack = Stack::start(SERVICE, &plugin(&limits)).await.unwrap();
    let client = stack.client().unwrap();
    for mark in [None, Some("over_limit"), Some("over_limit")] {
        let answer = client.get("/").await.unwrap();
        assert_eq!((answer.status, answer.reason(), answer.header(header::SHADOW)), (200, None, mark), "{answer:?}");
        assert!(answer.header(header::RATE_LIMIT).unwrap().starts_with("\"large\";"), "{answer:?}");
    }
    let denied = client.get("/").await.unwrap();
    assert_eq!((denied.status, denied.reason()), (429, Some("over_limit")), "{denied:?}");
    assert_eq!(denied.json()["violated-policies"], json!(["large"]));
    let shadow = r#"sluicegate_shadow_total{rule="all",verdict="over_limit"}"#;
    assert_eq!(stack.envoy.metric(shadow).await.unwrap(), 3);
    assert_eq!(stack.upstream.take_seen().len(), 3);
}

#[tokio::test]
async fn a_configuration_in_shadow_rejects_nothing() {
    let mut plugin = plugin(&json!([{ "policy": "one", "key": ["client_ip"] }]));
    plugin["shadow"] = true.into();
    let service = StandIn::start(Reply::answer(500, "")).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin)).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    // Callouts that fail, then an open breaker.
    for _ in 0..10 {
        let answer = client.get("/").await.unwrap();
        let mark = answer.header(header::SHADOW);
        assert_eq!((answer.status, answer.reason(), mark), (200, None, Some("failure_closed")), "{answer:?}");
    }
}
