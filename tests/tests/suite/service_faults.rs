//! The service dead, draining, or something else in its place.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::{
    Client, Envoy, Overlay, RawServer, Redis, Reply, Service, Signal, Stack, StandIn, Upstream, until,
};
use sluicegate_wire::header;

use crate::verdict::{
    LONG, SERVICE, TIMEOUT, assert_counted, assert_counts, assert_failure_verdicts, assert_failure_verdicts_in_time,
    plugin,
};

#[tokio::test]
async fn a_killed_service_opens_and_closes_in_time_and_comes_back() {
    let mut stack = Stack::start(SERVICE, &plugin(TIMEOUT)).await.unwrap();
    let client = stack.client().unwrap();
    assert_counts(&client, "at first").await;

    stack.service.kill();
    assert_failure_verdicts(&client, "killed").await;
    assert_failure_verdicts_in_time(&client, "killed").await;

    stack.service.restart().await.unwrap();
    assert_counts(&client, "killed").await;
}

#[tokio::test]
async fn a_frozen_service_opens_and_closes_in_time_and_comes_back() {
    let mut stack = Stack::start(SERVICE, &plugin(TIMEOUT)).await.unwrap();
    let client = stack.client().unwrap();
    assert_counts(&client, "at first").await;

    stack.service.process().signal(Signal::STOP).unwrap();
    assert_failure_verdicts(&client, "frozen").await;
    assert_failure_verdicts_in_time(&client, "frozen").await;

    stack.service.process().signal(Signal::CONT).unwrap();
    assert_counts(&client, "thawed").await;
}

/// Every answer that is not a marked, well-formed 200 or 429.
fn nonsense() -> Vec<(&'static str, Reply)> {
    let unmarked = |status, body: &str| Reply::answer(status, body).with_header("content-type", "application/json");
    let marked = |status, body: &str| unmarked(status, body).marked();
    let body = |allowed: bool, result: Value| json!({ "allowed": allowed, "results": [result] }).to_string();
    let ok = json!({
        "check": 0, "policy": "wide", "limit": "day", "allowed": true, "reason": "ok", "capacity": 9,
        "window_ms": 1000, "remaining": 1, "retry_after_ms": 0, "next_ms": 1000, "full_ms": 1000,
    });
    let mut over = ok.clone();
    over["allowed"] = false.into();
    over["reason"] = "over_limit".into();
    let (allowed, denied) = (body(true, ok), body(false, over));
    vec![
        ("garbage", marked(200, "\u{1}garbage\u{0}")),
        ("500", Reply::answer(500, "oops")),
        ("500, marked", Reply::answer(500, "oops").marked()),
        ("503, marked", Reply::answer(503, "oops").marked()),
        ("404, marked", Reply::answer(404, "oops").marked()),
        ("429 without the marker", unmarked(429, &denied)),
        ("200 without the marker", unmarked(200, &allowed)),
        ("an empty body", marked(200, "")),
        ("an empty body, 429", marked(429, "")),
        ("204", Reply::answer(204, "").marked()),
        ("302", Reply::answer(302, "").marked().with_header("location", "/")),
        ("40 kB of junk", Reply::answer(200, "junk ".repeat(8_000)).marked()),
        ("40 kB of brackets", marked(200, &"[".repeat(40_000))),
        ("2 MB of blanks after an answer", marked(200, &format!("{allowed}{}", " ".repeat(2 << 20)))),
        ("bytes that are not UTF-8", Reply::answer(200, vec![0xff; 100]).marked()),
        ("half an answer", marked(200, r#"{"allowed":true,"results":[{"che"#)),
        ("another object", marked(200, r#"{"ok":true}"#)),
        ("a list", marked(200, "[]")),
        ("allowed, with 429", marked(429, &allowed)),
        ("denied, with 200", marked(200, &denied)),
    ]
}

#[tokio::test]
async fn any_other_answer_is_a_failure() {
    let service = StandIn::start(Reply::allowed()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin(LONG))).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    for (case, reply) in nonsense() {
        service.reply_with(reply);
        assert_failure_verdicts(&client, case).await;
        // The stand-in is not what fails: its good answer counts at once.
        service.reply_with(Reply::allowed());
        assert_counts(&client, case).await;
    }
}

/// Answers that break on the wire, where HTTP/1.1 lets them.
#[tokio::test]
async fn a_broken_answer_is_a_failure() {
    let service = RawServer::start("").await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin(LONG));
    let envoy = Envoy::start(&overlay.http1_to_service()).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    let marker = header::MARKER;
    for (case, answer) in [
        ("a connection that closes at once", String::new()),
        ("not HTTP", "hello\n".to_owned()),
        ("nothing but an end", "HTTP/1.1 200 OK\r\n".to_owned()),
        ("a body that breaks off", format!("HTTP/1.1 200 OK\r\n{marker}: 1\r\ncontent-length: 9999\r\n\r\n{{")),
        (
            "a chunk that breaks off",
            format!("HTTP/1.1 200 OK\r\n{marker}: 1\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{{"),
        ),
    ] {
        service.answer_with(answer);
        assert_failure_verdicts(&client, case).await;
    }
}

/// SIGTERM: unready at once, everything is answered while it drains, and what is in flight at the end finishes.
#[tokio::test]
async fn a_draining_service_fails_nobody() {
    let mut stack = Stack::start(SERVICE, &plugin(LONG)).await.unwrap();
    let client = stack.client().unwrap();
    let service = Client::new(stack.service.port()).unwrap();
    assert_counted(&client.get("/closed/x").await.unwrap());

    stack.service.process().signal(Signal::TERM).unwrap();
    until("the service to be unready", Duration::from_secs(5), async || {
        (service.get("/readyz").await.unwrap().status == 503).then_some(())
    })
    .await
    .unwrap();
    // Who answers after a request was open while it was.
    let mut counted = 0;
    loop {
        let answer = client.get("/closed/x").await.unwrap();
        if service.get("/readyz").await.is_err() {
            break;
        }
        assert_counted(&answer);
        counted += 1;
    }
    assert!(counted > 0);
    let status = stack.service.process().exited(Duration::from_secs(10)).await.unwrap();
    assert!(status.success(), "{status}");

    stack.service.restart().await.unwrap();
    assert_counts(&client, "restarted").await;
}

#[tokio::test]
async fn a_check_in_flight_outlives_the_drain() {
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();

    redis.freeze();
    let in_flight = tokio::spawn({
        let client = client.clone();
        async move { client.take("wide", "u", 1).await }
    });
    // The service reads the check before this, or while it drains: either way it is in flight when nothing is accepted
    // any more.
    assert_eq!(client.get("/healthz").await.unwrap().status, 200);
    service.process().signal(Signal::TERM).unwrap();
    until("the listener to close", Duration::from_secs(5), async || {
        client.get("/healthz").await.is_err().then_some(())
    })
    .await
    .unwrap();
    redis.thaw();
    let answer = in_flight.await.unwrap().unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    let status = service.process().exited(Duration::from_secs(5)).await.unwrap();
    assert!(status.success(), "{status}");
}
