//! What a request travels in: HTTP/1.1, HTTP/2, one connection for many, an upgrade; and what it carries.

use std::time::Duration;

use axum::{
    Router,
    extract::Request,
    http::{Response, StatusCode},
    routing::get,
};
use reqwest::{Method, Version};
use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, RawServer, Redis, Service, Signal, Stack, Upstream, exchange, until};
use sluicegate_wire::header;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use crate::verdict::{LONG, SERVICE, assert_counted, assert_failure_verdicts, plugin};

/// Refills once a day.
const TWO: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  two:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }]
";

fn two() -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "all", "limits": [{ "policy": "two", "key": [{ "header": "x-account" }] }], "on_failure": "closed",
        }],
    })
}

#[tokio::test]
async fn http1_and_http2_are_counted_alike() {
    let stack = Stack::start(TWO, &two()).await.unwrap();
    let port = stack.envoy.port();
    let (one, two) = (Client::new(port).unwrap(), Client::new_http2(port).unwrap());
    for (first, second, account) in [(&one, &two, "a"), (&two, &one, "b")] {
        let ask = async |client: &Client| client.send(Method::GET, "/x", &[("x-account", account)]).await.unwrap();
        let allowed = [ask(first).await, ask(second).await];
        let denied = [ask(first).await, ask(second).await];
        allowed.iter().for_each(assert_counted);
        for answer in &denied {
            assert_eq!((answer.status, answer.reason()), (429, Some("over_limit")), "{answer:?}");
        }
        // Header for header the same, but for what HTTP itself says.
        let headers = |index: usize| {
            let mut headers = denied[index].headers.clone();
            for name in ["date", "x-envoy-upstream-service-time", "connection"] {
                headers.remove(name);
            }
            headers
        };
        assert_eq!(headers(0), headers(1));
        let versions = [&denied[0], &denied[1]].map(|answer| answer.version);
        assert!(versions.contains(&Version::HTTP_11) && versions.contains(&Version::HTTP_2), "{versions:?}");
    }
    assert_eq!(stack.upstream.take_seen().len(), 4);
}

#[tokio::test]
async fn a_thousand_requests_on_one_connection_are_each_counted() {
    let stack = Stack::start(SERVICE, &plugin(LONG)).await.unwrap();
    let client = stack.client().unwrap();
    for _ in 0..1000 {
        assert_counted(&client.get("/closed/x").await.unwrap());
    }
    assert_eq!(stack.envoy.stat("http.ingress.downstream_cx_http1_total").await.unwrap(), 1);
    let looked = Client::new(stack.service.port()).unwrap().take("wide", "127.0.0.1", 0).await.unwrap().json();
    assert_eq!(looked["results"][0]["remaining"], 99_000);
    let allowed = r#"sluicegate_requests_total{rule="closed",verdict="allowed"}"#;
    assert_eq!(stack.envoy.metric(allowed).await.unwrap(), 1000);
    assert_eq!(stack.upstream.take_seen().len(), 1000);
}

/// More than any buffer on the way holds, sent while the decision is still out.
#[tokio::test]
async fn a_body_of_10_mb_arrives_byte_for_byte() {
    let body: Vec<u8> = (0..10_000_000_u32).flat_map(|word| word.to_be_bytes()).take(10_000_000).collect();
    let mut stack = Stack::start(SERVICE, &plugin(LONG)).await.unwrap();
    for client in [stack.client().unwrap(), Client::new_http2(stack.envoy.port()).unwrap()] {
        stack.service.process().signal(Signal::STOP).unwrap();
        let upload = tokio::spawn({
            let (client, body) = (client.clone(), body.clone());
            async move { client.send_body(Method::POST, "/closed/x", body).await }
        });
        until("the callout", Duration::from_secs(10), async || {
            (stack.envoy.stat("cluster.sluicegate.upstream_rq_active").await.unwrap() == 1).then_some(())
        })
        .await
        .unwrap();
        assert!(stack.upstream.take_seen().is_empty());
        stack.service.process().signal(Signal::CONT).unwrap();
        assert_counted(&upload.await.unwrap().unwrap());
        let seen = stack.upstream.take_seen();
        assert!(seen.len() == 1 && seen[0].body == body, "{} bytes", seen[0].body.len());
    }
    // A denied upload is answered before it is sent.
    stack.service.kill();
    let head = b"POST /closed/x HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000\r\n\r\n";
    let denied = exchange(stack.envoy.port(), head).await.unwrap();
    assert!(denied.starts_with("HTTP/1.1 429 ") && denied.contains("failure_closed"), "{denied}");
    assert!(stack.upstream.take_seen().is_empty());
}

/// More than the proxy keeps of an answer to a callout.
#[tokio::test]
async fn an_answer_of_40_mb_is_a_failure() {
    let head = format!("HTTP/1.1 200 OK\r\n{}: 1\r\ncontent-length: 40000000\r\n\r\n", header::MARKER);
    let service = RawServer::start([head.as_bytes(), &[b' '; 40_000_000]].concat()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin(LONG));
    let envoy = Envoy::start(&overlay.http1_to_service()).await.unwrap();
    assert_failure_verdicts(&Client::new(envoy.port()).unwrap(), "40 MB").await;
    let failures = async |kind: &str| {
        envoy.metric(&format!("sluicegate_callout_failures_total{{kind=\"{kind}\"}}")).await.unwrap()
    };
    assert_eq!(failures("transport").await + failures("malformed").await, 2);
}

/// The example of RFC 6455: the opening handshake of section 1.3, and section 5.7's "Hello", masked and not.
const OPENING: &str = "GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: Upgrade\r\n\
    sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\nx-account: a\r\n\r\n";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const FROM_CLIENT: &[u8] = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
const FROM_SERVER: &[u8] = b"\x81\x05Hello";

async fn chat(request: Request) -> Response<axum::body::Body> {
    tokio::spawn(async move {
        let mut socket = hyper_util::rt::TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut message = [0; FROM_CLIENT.len()];
        while socket.read_exact(&mut message).await.is_ok() {
            assert_eq!(message, FROM_CLIENT);
            socket.write_all(FROM_SERVER).await.unwrap();
        }
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    let response = response.header("upgrade", "websocket").header("connection", "Upgrade");
    response.header("sec-websocket-accept", ACCEPT).body(axum::body::Body::empty()).unwrap()
}

#[tokio::test]
async fn a_websocket_opens_and_talks_and_a_denied_one_gets_429() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(TWO, &redis.url()).await.unwrap();
    let upstream = Upstream::start_with(Router::new().route("/chat", get(chat))).await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&two());
    let overlay = overlay.manager(json!({ "upgrade_configs": [{ "upgrade_type": "websocket" }] }));
    let envoy = Envoy::start(&overlay).await.unwrap();
    let talk = async {
        for _ in 0..2 {
            let mut socket = TcpStream::connect(("127.0.0.1", envoy.port())).await.unwrap();
            socket.write_all(OPENING.as_bytes()).await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(socket.read_u8().await.unwrap());
            }
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with("HTTP/1.1 101 ") && head.contains(ACCEPT), "{head}");
            assert!(head.contains("\r\nratelimit: \"day\";r="), "{head}");
            for _ in 0..3 {
                socket.write_all(FROM_CLIENT).await.unwrap();
                let mut message = [0; FROM_SERVER.len()];
                socket.read_exact(&mut message).await.unwrap();
                assert_eq!(message, FROM_SERVER);
            }
        }
    };
    timeout(Duration::from_secs(10), talk).await.unwrap();
    let denied = exchange(envoy.port(), OPENING.as_bytes()).await.unwrap();
    assert!(denied.starts_with("HTTP/1.1 429 ") && denied.contains("\r\nx-sluicegate-reason: over_limit"), "{denied}");
    assert!(denied.contains("\r\nretry-after: "), "{denied}");
    let requests = async |verdict: &str| {
        envoy.metric(&format!("sluicegate_requests_total{{rule=\"all\",verdict=\"{verdict}\"}}")).await.unwrap()
    };
    assert_eq!((requests("allowed").await, requests("over_limit").await), (2, 1));
}
