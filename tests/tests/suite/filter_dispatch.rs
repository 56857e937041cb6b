//! Callouts that the proxy doesn't send, that come back late, and whose client left.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluicegate_tests::{
    Client, Envoy, FaultProxy, Overlay, Port, Redis, Reply, Service, Signal, Stack, StandIn, Traffic, Upstream, until,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

use crate::verdict::{
    LONG, SERVICE, TIMEOUT, assert_counted, assert_counts, assert_failure_verdicts, assert_failure_verdicts_in_time,
    plugin,
};

/// What no wait for the filter's timeout of 20 s would stay below.
const AT_ONCE: Duration = Duration::from_secs(5);
const ASKED: &str = "cluster.sluicegate.upstream_rq_active";

/// Every failure is asked about anew.
fn without_breaker(timeout: Duration) -> Value {
    let mut plugin = plugin(timeout);
    plugin["breaker"] = json!({ "failures": 0 });
    plugin
}

/// Failure verdicts at once, each with one of these kinds, from both workers: each client has a connection of its own.
async fn assert_fails_at_once(envoy: &Envoy, kinds: &[&str], case: &str) {
    let start = Instant::now();
    for _ in 0..8 {
        assert_failure_verdicts(&Client::new(envoy.port()).unwrap(), case).await;
    }
    assert!(start.elapsed() < AT_ONCE, "{case}: {:?}", start.elapsed());
    let mut failures = 0;
    for kind in kinds {
        failures += envoy.metric(&format!("sluicegate_callout_failures_total{{kind=\"{kind}\"}}")).await.unwrap();
    }
    assert_eq!(failures, 16, "{case}");
}

#[tokio::test]
async fn what_the_proxy_can_not_send_fails_at_once() {
    let (nobody, upstream) = (Port::lease().unwrap(), Upstream::start().await.unwrap());
    let overlay = |plugin: &Value| Overlay::new(nobody.number(), upstream.port()).plugin(plugin);
    let mut elsewhere = without_breaker(LONG);
    elsewhere["service"]["cluster"] = "no-such-cluster".into();
    let plugin = without_breaker(LONG);
    let address = json!({ "socket_address": { "address": "127.0.0.1", "port_value": nobody.number() } });
    let sick = json!({
        "common_lb_config": { "healthy_panic_threshold": { "value": 0 } },
        "load_assignment": { "endpoints": [{
            "lb_endpoints": [{ "health_status": "UNHEALTHY", "endpoint": { "address": address } }],
        }] },
    });
    let empty = json!({ "load_assignment": { "endpoints": [] } });
    for (case, kinds, overlay) in [
        ("an unknown cluster", &["dispatch_refused"][..], overlay(&elsewhere)),
        ("a cluster without hosts", &["dispatch_refused"], overlay(&plugin).cluster("sluicegate", empty)),
        ("no healthy host", &["dispatch_refused"], overlay(&plugin).cluster("sluicegate", sick)),
        ("a refused connection", &["transport"], overlay(&plugin)),
    ] {
        assert_fails_at_once(&Envoy::start(&overlay).await.unwrap(), kinds, case).await;
    }
}

/// The proxy's own bound for callouts under way: those above it fail at once, the one below it is answered.
#[tokio::test]
async fn a_full_circuit_breaker_fails_at_once() {
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let one = json!({ "circuit_breakers": { "thresholds": [{ "max_requests": 1 }] } });
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&without_breaker(LONG));
    let envoy = Envoy::start(&overlay.cluster("sluicegate", one)).await.unwrap();

    service.process().signal(Signal::STOP).unwrap();
    let client = Client::new(envoy.port()).unwrap();
    let held = tokio::spawn(async move { client.get("/closed/x").await });
    until_stat(&envoy, ASKED, 1).await;
    // A worker that has no connection yet makes one first, and then answers itself.
    assert_fails_at_once(&envoy, &["dispatch_refused", "transport"], "overflow").await;
    service.process().signal(Signal::CONT).unwrap();
    assert_counted(&held.await.unwrap().unwrap());
}

/// The connection to the service breaks anywhere in an answer: between streams of HTTP/2 that others wait for as well.
#[tokio::test]
async fn an_answer_that_is_cut_off_fails_at_once_and_the_next_is_whole() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let (way, upstream) = (FaultProxy::start(service.port()).await.unwrap(), Upstream::start().await.unwrap());
    let envoy = Envoy::start(&Overlay::new(way.port(), upstream.port()).plugin(&plugin(LONG))).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    // Of some 300 bytes: nothing, half a frame, the headers and more or less of the body.
    for (cut, keep_bytes) in [0, 5, 20, 60, 120, 180, 220].into_iter().enumerate() {
        assert_counts(&client, "before").await;
        way.cut_reply(b"\"checks\"", keep_bytes);
        let start = Instant::now();
        let answer = client.get("/closed/x").await.unwrap();
        assert_eq!((answer.status, answer.reason()), (429, Some("failure_closed")), "{keep_bytes} bytes: {answer:?}");
        assert!(start.elapsed() < AT_ONCE, "{keep_bytes} bytes: {:?}", start.elapsed());
        assert_eq!(way.cuts(), cut + 1);
    }
    assert_counts(&client, "at last").await;
    assert_eq!(envoy.metric(r#"sluicegate_callout_failures_total{kind="transport"}"#).await.unwrap(), 7);
}

/// A service that is slow, but in time, decides; where it is too slow the failure verdict comes at the timeout.
#[tokio::test]
async fn each_rule_waits_as_long_as_it_says() {
    const WAY: Duration = Duration::from_millis(150);
    let mut plugin = without_breaker(TIMEOUT);
    let patient = json!({
        "name": "patient", "match": { "path": { "prefix": "/patient/" } }, "timeout": "20s", "on_failure": "closed",
        "limits": [{ "policy": "wide", "key": ["client_ip"] }],
    });
    plugin["rules"].as_array_mut().unwrap().push(patient);
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let (slow, upstream) = (FaultProxy::start(service.port()).await.unwrap(), Upstream::start().await.unwrap());
    let envoy = Envoy::start(&Overlay::new(slow.port(), upstream.port()).plugin(&plugin)).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    assert_counts(&client, "at first").await;

    slow.set(Traffic::Delay(WAY)).await.unwrap();
    let answer = client.get("/patient/x").await.unwrap();
    assert_counted(&answer);
    assert!(answer.elapsed >= 2 * WAY && answer.elapsed < AT_ONCE, "{:?}", answer.elapsed);
    assert_failure_verdicts(&client, "slow").await;
    assert_failure_verdicts_in_time(&client, "slow").await;
    assert!(client.get("/closed/x").await.unwrap().elapsed >= TIMEOUT);
    let timeouts = r#"sluicegate_callout_failures_total{kind="timeout"}"#;
    assert_eq!(envoy.metric(timeouts).await.unwrap(), 13);

    slow.set(Traffic::Pass).await.unwrap();
    assert_counts(&client, "fast again").await;
}

#[tokio::test]
async fn a_client_that_leaves_during_the_callout_harms_nobody() {
    let mut stack = Stack::start(SERVICE, &plugin(LONG)).await.unwrap();
    stack.service.process().signal(Signal::STOP).unwrap();
    // By closing a connection of HTTP/1.1, and by resetting a stream of HTTP/2.
    let (mut leaving, mut resetting) = (Vec::new(), JoinSet::new());
    for asked in [1, 3, 5, 7] {
        let mut client = TcpStream::connect(("127.0.0.1", stack.envoy.port())).await.unwrap();
        client.write_all(b"GET /closed/x HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        until_stat(&stack.envoy, ASKED, asked).await;
        leaving.push(client);
        let client = Client::new_http2(stack.envoy.port()).unwrap();
        resetting.spawn(async move { client.get("/closed/x").await });
        until_stat(&stack.envoy, ASKED, asked + 1).await;
    }
    let stays = Client::new(stack.envoy.port()).unwrap();
    let stays = tokio::spawn(async move { stays.get("/closed/x").await });
    until_stat(&stack.envoy, ASKED, 9).await;
    drop(leaving);
    resetting.shutdown().await;
    until_stat(&stack.envoy, "http.ingress.downstream_rq_active", 1).await;
    stack.service.process().signal(Signal::CONT).unwrap();
    assert_counted(&stays.await.unwrap().unwrap());
    until_stat(&stack.envoy, ASKED, 0).await;
    for _ in 0..8 {
        assert_counted(&Client::new(stack.envoy.port()).unwrap().get("/closed/x").await.unwrap());
    }
    // Who leaves while the service decides has been charged.
    let looked = Client::new(stack.service.port()).unwrap().take("wide", "127.0.0.1", 0).await.unwrap().json();
    assert_eq!(looked["results"][0]["remaining"], 100_000 - 17);
    assert_eq!(stack.upstream.take_seen().len(), 9);
}

/// The one request that finds out for a worker whether the service is back leaves: another does it.
#[tokio::test]
async fn a_probe_whose_client_leaves_keeps_no_breaker_open() {
    let mut plugin = plugin(LONG);
    plugin["breaker"] = json!({ "failures": 1, "open_for": "1ms" });
    let service = StandIn::start(Reply::answer(500, "").marked()).await.unwrap();
    let (way, upstream) = (FaultProxy::start(service.port()).await.unwrap(), Upstream::start().await.unwrap());
    let envoy = Envoy::start(&Overlay::new(way.port(), upstream.port()).plugin(&plugin)).await.unwrap();
    let open = async || envoy.metric("sluicegate_breaker_open{}").await.unwrap();

    let mut leaving = TcpStream::connect(("127.0.0.1", envoy.port())).await.unwrap();
    let ask = b"GET /open/x HTTP/1.1\r\nhost: x\r\n\r\n";
    leaving.write_all(ask).await.unwrap();
    assert!(leaving.read(&mut [0; 4096]).await.unwrap() > 0);
    assert_eq!(open().await, 1);
    way.set(Traffic::Drop).await.unwrap();
    leaving.write_all(ask).await.unwrap();
    until_stat(&envoy, ASKED, 1).await;
    drop(leaving);
    until_stat(&envoy, "http.ingress.downstream_rq_active", 0).await;

    service.reply_with(Reply::allowed());
    way.set(Traffic::Pass).await.unwrap();
    until("another probe", AT_ONCE, async || {
        Client::new(envoy.port()).unwrap().get("/open/x").await.unwrap();
        (open().await == 0).then_some(())
    })
    .await
    .unwrap();
}

async fn until_stat(envoy: &Envoy, name: &str, expected: u64) {
    until(&format!("{name} to be {expected}"), Duration::from_secs(10), async || {
        (envoy.stat(name).await.unwrap() == expected).then_some(())
    })
    .await
    .unwrap();
}
