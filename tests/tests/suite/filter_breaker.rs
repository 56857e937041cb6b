//! The breaker: an outage costs a few callouts a worker, not one a request.

use std::time::Duration;

use serde_json::json;
use sluicegate_tests::{Client, Envoy, Overlay, Reply, StandIn, Upstream, until};

use crate::verdict::assert_counted;

const OPEN: &str = "sluicegate_breaker_open{}";

/// Envoy with one closed rule and a breaker that opens after three failures. One client has one connection, so one worker
/// serves all that it asks.
async fn start(service: &StandIn, open_for: &str) -> (Envoy, Client) {
    let plugin = json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{ "name": "all", "limits": [{ "policy": "p", "key": ["client_ip"] }], "on_failure": "closed" }],
        "breaker": { "failures": 3, "open_for": open_for },
    });
    let upstream = Upstream::start().await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin)).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    (envoy, client)
}

async fn assert_closed(client: &Client, requests: usize) {
    for _ in 0..requests {
        let answer = client.get("/").await.unwrap();
        assert_eq!((answer.status, answer.reason()), (429, Some("failure_closed")), "{answer:?}");
    }
}

#[tokio::test]
async fn an_open_breaker_makes_no_callout() {
    let service = StandIn::start(Reply::answer(500, "").marked()).await.unwrap();
    let (envoy, client) = start(&service, "1h").await;
    assert_closed(&client, 3).await;
    assert_eq!(service.take_asked().len(), 3);
    assert_eq!(envoy.metric(OPEN).await.unwrap(), 1);

    service.reply_with(Reply::allowed());
    assert_closed(&client, 20).await;
    assert!(service.take_asked().is_empty());
    let kind = |kind: &str| format!("sluicegate_callout_failures_total{{kind=\"{kind}\"}}");
    assert_eq!(envoy.metric(&kind("unavailable")).await.unwrap(), 3);
    assert_eq!(envoy.metric(&kind("breaker_open")).await.unwrap(), 20);
}

#[tokio::test]
async fn a_probe_closes_it_again() {
    let service = StandIn::start(Reply::answer(500, "").marked()).await.unwrap();
    let (envoy, client) = start(&service, "100ms").await;
    assert_closed(&client, 3).await;
    // Some of these are probes, which fail.
    let _ = service.take_asked();
    until("a probe", Duration::from_secs(10), async || {
        assert_closed(&client, 1).await;
        (!service.take_asked().is_empty()).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(envoy.metric(OPEN).await.unwrap(), 1);

    service.reply_with(Reply::allowed());
    until("an answer to close it", Duration::from_secs(10), async || {
        (client.get("/").await.unwrap().status == 200).then_some(())
    })
    .await
    .unwrap();
    for _ in 0..10 {
        assert_counted(&client.get("/").await.unwrap());
    }
    assert_eq!(envoy.metric(OPEN).await.unwrap(), 0);
}

#[tokio::test]
async fn questions_that_the_service_refuses_leave_it_closed() {
    let service = StandIn::start(Reply::answer(404, "").marked()).await.unwrap();
    let (envoy, client) = start(&service, "1h").await;
    assert_closed(&client, 10).await;
    assert_eq!(service.take_asked().len(), 10);
    assert_eq!(envoy.metric(OPEN).await.unwrap(), 0);
    assert_eq!(envoy.metric(r#"sluicegate_callout_failures_total{kind="config"}"#).await.unwrap(), 10);
}
