//! The filter's numbers in the proxy's statistics, and its verdicts in the access log.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::{Envoy, Overlay, Redis, Service, Stack, Upstream, until};

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  two:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }]
";

fn plugin(labels: &str) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "api.v1",
            "match": { "path": { "prefix": "/api/" } },
            "limits": [{ "policy": "two", "key": ["client_ip"] }],
        }],
        "metrics": { "labels": labels },
    })
}

async fn assert_counts(envoy: &Envoy) {
    let client = sluicegate_tests::Client::new(envoy.port()).unwrap();
    for _ in 0..3 {
        client.get("/api/x").await.unwrap();
    }
    client.get("/").await.unwrap();
    for (name, value) in [
        (r#"sluicegate_requests_total{rule="api.v1",verdict="allowed"}"#, 2),
        (r#"sluicegate_requests_total{rule="api.v1",verdict="over_limit"}"#, 1),
        ("sluicegate_unmatched_total{}", 1),
    ] {
        assert_eq!(envoy.metric(name).await.unwrap(), value, "{name}");
    }
    // Histograms are merged once in a few seconds.
    until("the callouts' times", Duration::from_secs(20), async || {
        (envoy.metric("sluicegate_callout_ms_count{}").await.unwrap() == 3).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn rule_and_verdict_are_labels() {
    let stack = Stack::start(SERVICE, &plugin("envoy")).await.unwrap();
    assert_counts(&stack.envoy).await;
    // Envoy writes its log every ten seconds.
    until("the access log", Duration::from_secs(30), async || {
        let log = stack.envoy.process().log();
        (log.contains("rule=api.v1 verdict=over_limit details=sluicegate_over_limit")
            && log.contains("rule=api.v1 verdict=allowed details=via_upstream")
            && log.contains("rule=- verdict=- details=via_upstream"))
        .then_some(())
    })
    .await
    .unwrap();
}

/// The patterns that Istio makes of `extraStatTags: [rule, verdict, kind]`.
#[tokio::test]
async fn the_form_for_istio_has_the_same_labels() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let tag = |name: &str| json!({ "tag_name": name, "regex": format!(r"({name}=\.=(.*?);\.;)") });
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin("istio"));
    let overlay = overlay.stats_tags(json!([tag("rule"), tag("verdict"), tag("kind")]));
    assert_counts(&Envoy::start(&overlay).await.unwrap()).await;
}
