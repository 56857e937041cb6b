//! `charge: {only_status: …}`: what the response's status gives back.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Reply, Service, Stack, StandIn, Upstream, until};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::verdict::assert_counted;

/// A bucket and a quota, which is given back only within the window that was charged.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  guesses:
    limits:
      - { name: day, capacity: 3, refill: 3, per: 1d, interval: true }
      - { name: month, quota: 3, every: month, time_zone: UTC }
";

fn plugin() -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "login",
            "limits": [{ "policy": "guesses", "key": ["client_ip"] }],
            "charge": { "only_status": [401, 403] },
        }],
    })
}

/// What is left of both limits.
async fn left(service: &Service) -> (u64, u64) {
    let looked = Client::new(service.port()).unwrap().take("guesses", "127.0.0.1", 0).await.unwrap().json();
    let left = |limit: usize| looked["results"][limit]["remaining"].as_u64().unwrap();
    (left(0), left(1))
}

async fn until_left(service: &Service, expected: (u64, u64)) {
    until(&format!("{expected:?} to be left"), Duration::from_secs(10), async || {
        (left(service).await == expected).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn another_status_gives_back_and_a_listed_one_stays_charged() {
    let stack = Stack::start(SERVICE, &plugin()).await.unwrap();
    let client = stack.client().unwrap();
    // More than there is to take, were it not given back.
    for _ in 0..5 {
        assert_counted(&client.get("/").await.unwrap());
        until_left(&stack.service, (3, 3)).await;
    }
    for (status, charged) in [(401, 1), (403, 2), (401, 3)] {
        stack.upstream.answer_with(status);
        assert_eq!(client.get("/").await.unwrap().status, status);
        assert_eq!(left(&stack.service).await, (3 - charged, 3 - charged));
    }
    let denied = client.get("/").await.unwrap();
    assert_eq!((denied.status, denied.reason()), (429, Some("over_limit")), "{denied:?}");
    assert_eq!(left(&stack.service).await, (0, 0), "a denial took nothing and gives nothing back");
    assert_eq!(stack.envoy.metric(r#"sluicegate_refunds_total{rule="login"}"#).await.unwrap(), 5);
}

#[tokio::test]
async fn a_client_that_leaves_stays_charged() {
    let redis = sluicegate_tests::Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    // Accepts and never answers.
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let overlay = Overlay::new(service.port(), upstream.local_addr().unwrap().port()).plugin(&plugin());
    let envoy = Envoy::start(&overlay).await.unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", envoy.port())).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    until_left(&service, (2, 2)).await;
    until("the request to be with the upstream", Duration::from_secs(10), async || {
        (envoy.stat("cluster.upstream.upstream_rq_active").await.unwrap() == 1).then_some(())
    })
    .await
    .unwrap();
    drop(client);
    until("Envoy to notice", Duration::from_secs(10), async || {
        (envoy.stat("cluster.upstream.upstream_rq_active").await.unwrap() == 0).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(left(&service).await, (2, 2));
    assert_eq!(envoy.metric(r#"sluicegate_refunds_total{rule="login"}"#).await.unwrap(), 0);
}

#[tokio::test]
async fn a_pass_under_a_failure_verdict_is_never_given_back() {
    let service = StandIn::start(Reply::answer(500, "").marked()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin())).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    assert_eq!(client.get("/").await.unwrap().reason(), Some("failure_open"));
    // This one is given back, after the other would have been.
    service.reply_with(Reply::allowed());
    assert_counted(&client.get("/").await.unwrap());
    let asked = until("a refund", Duration::from_secs(10), async || {
        (envoy.metric(r#"sluicegate_refunds_total{rule="login"}"#).await.unwrap() > 0).then(|| service.take_asked())
    })
    .await
    .unwrap();
    assert_eq!(asked.iter().filter(|path| *path == "/v1/check").count(), 2);
    assert!(asked.iter().filter(|path| *path == "/v1/refund").count() <= 1, "{asked:?}");
}
