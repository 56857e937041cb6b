//! Bytes 0x80 to 0xFF, which HTTP allows in a header's value and UTF-8 does not allow anywhere alone.

use serde_json::json;
use sluicegate_tests::{Client, Envoy, Overlay, RawServer, Redis, Reply, Service, StandIn, exchange};
use sluicegate_wire::header;

use crate::verdict::SERVICE;

/// Every byte a header may hold beyond ASCII; one alone; and UTF-8 that breaks off.
fn values() -> Vec<Vec<u8>> {
    vec![(0x80..=0xff).collect(), vec![0xff], vec![b'a', 0xc3], vec![0x80], "é".into()]
}

/// A rule of each kind of match and key.
fn plugin() -> serde_json::Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "5s" },
        "rules": [{
            "name": "all",
            "match": { "methods": ["GET", "POST"], "path": { "prefix": "/a" } },
            "limits": [
                { "policy": "wide", "key": [{ "header": "x-api-key", "secret": true }] },
                { "policy": "wide", "key": [{ "header": "x-account" }, "client_ip"] },
            ],
            "on_failure": "closed",
        }],
    })
}

const GET: &str = "GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n";

/// A message's head with the value wherever `%` stands.
fn fill(head: &str, value: &[u8]) -> Vec<u8> {
    head.split('%').map(str::as_bytes).collect::<Vec<_>>().join(value)
}

#[tokio::test]
async fn no_byte_of_a_request_harms_the_filter() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    // An upstream that doesn't mind: what comes back is Envoy's and the filter's doing.
    let upstream = RawServer::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin())).await.unwrap();
    let ask = async |request: Vec<u8>| exchange(envoy.port(), &request).await.unwrap();

    for value in values() {
        for (case, headers) in [
            ("a secret", "x-api-key: %\r\n"),
            ("an account", "x-account: %\r\n"),
            ("both", "x-api-key: k%k\r\nx-account: %\r\n"),
            ("twice", "x-account: %\r\nx-account: %\r\n"),
            ("a header of no rule", "x-other: %\r\n"),
            ("the reason of an answer", "x-sluicegate-reason: %\r\n"),
            ("the time left", "x-sluicegate-timeout-ms: %\r\n"),
        ] {
            let head = format!("GET /a HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
            let answer = ask(fill(&head, &value)).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{case} {value:x?}: {answer}");
            // Counted, not passed or rejected by a failure verdict.
            assert!(answer.contains(header::RATE_LIMIT_POLICY), "{case} {value:x?}: {answer}");
        }
        // Envoy may refuse these before the filter sees them, but not with a fault of its own.
        for (case, head) in [
            ("path", "GET /a% HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            ("path", "GET /%/../a HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            ("query", "GET /a?q=% HTTP/1.1\r\nhost: localhost\r\n\r\n"),
            ("authority", "GET /a HTTP/1.1\r\nhost: local%host\r\n\r\n"),
            ("method", "GE%T /a HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        ] {
            let answer = ask(fill(head, &value)).await;
            let codes = ["HTTP/1.1 200", "HTTP/1.1 400"];
            assert!(codes.iter().any(|code| answer.starts_with(code)), "{case} {value:x?}: {answer}");
        }
    }
    assert!(redis.assert_all_keys_expire() > 0);
}

#[tokio::test]
async fn no_byte_of_an_answer_harms_the_filter() {
    let service = StandIn::start(Reply::allowed()).await.unwrap();
    let upstream = RawServer::start("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin())).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    for value in values() {
        for name in [header::MARKER, "content-type", header::RATE_LIMIT, header::RETRY_AFTER, "x-other", "server"] {
            service.reply_with(Reply::allowed().with_header(name, value.clone()));
            let answer = client.get("/a").await.unwrap();
            assert_eq!((answer.status, answer.reason()), (200, None), "{name}: {value:x?}: {answer:?}");
            // What the filter tells comes from the body, through its own check of every byte.
            assert_eq!(answer.header(header::RATE_LIMIT), Some(r#""minute";r=9;t=6"#), "{name}: {value:x?}");
        }
    }
}

#[tokio::test]
async fn no_byte_of_an_upstreams_answer_harms_the_filter() {
    let service = StandIn::start(Reply::allowed()).await.unwrap();
    let upstream = RawServer::start("").await.unwrap();
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin())).await.unwrap();
    for value in values() {
        let head = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nratelimit: %\r\nx-sluicegate-reason: %\r\n\r\n";
        upstream.answer_with(fill(head, &value));
        let answer = exchange(envoy.port(), &fill(GET, b"")).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{value:x?}: {answer}");
    }
}
