//! The memory of a worker's VM.

use serde_json::{Value, json};
use sluicegate_tests::{Envoy, Overlay, Reply, StandIn, Upstream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
};

/// The bound that we promise.
const VM_KIB: u64 = 8 << 10;

/// Thirty rules with regular expressions and tables of their own; the caches as large as they are by default.
fn plugin() -> Value {
    let local = json!({ "local": { "capacity": 5, "refill": 5, "per": "1h" } });
    let rule = |index: u64| {
        json!({
            "name": format!("rule-{index}"),
            "match": { "methods": ["GET", "POST"], "path": { "regex": format!("/r{index}/([a-z]+/)*[0-9]{{1,20}}") } },
            "limits": [
                { "policy": "api", "key": ["client_ip"] },
                { "policy": "api", "key": [{ "header": "x-account", "secret": true }, "host"] },
            ],
            "on_failure": local,
        })
    };
    let mut rules: Vec<Value> = (0..29).map(rule).collect();
    rules.push(json!({
        "name": "rest", "limits": [{ "policy": "api", "key": [{ "header": "x-account" }] }], "on_failure": local,
    }));
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": rules,
        "deny_cache": { "max_life": "1h" },
    })
}

/// A denial that may be kept for an hour.
fn denied() -> Reply {
    let result = json!({
        "check": 0, "policy": "api", "limit": "minute", "allowed": false, "reason": "over_limit", "capacity": 10,
        "window_ms": 7_200_000, "remaining": 0, "retry_after_ms": 3_600_000, "next_ms": 3_600_000,
        "full_ms": 7_200_000,
    });
    let body = json!({ "allowed": false, "results": [result], "deny_cache_ms": 3_600_000 }).to_string();
    Reply::answer(429, body).marked()
}

/// 20 connections, each with `requests` of accounts that nobody else has.
async fn flood(envoy: &Envoy, name: &str, requests: usize) {
    let mut tasks = JoinSet::new();
    for connection in 0..20 {
        let (port, name) = (envoy.port(), name.to_owned());
        tasks.spawn(async move {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            for index in 0..requests {
                let account = format!("{name}-{connection}-{index}-{}", "x".repeat(80));
                let head = format!("GET /r7/some/path HTTP/1.1\r\nhost: localhost\r\nx-account: {account}\r\n\r\n");
                stream.write_all(head.as_bytes()).await.unwrap();
                let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
                // The end of each kind of answer that there is here.
                while ![b"upstream\n".as_slice(), b"}"].iter().any(|end| answer.ends_with(end)) {
                    let read = stream.read(&mut bytes).await.unwrap();
                    assert!(read > 0, "{}", String::from_utf8_lossy(&answer));
                    answer.extend(&bytes[..read]);
                }
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vm_stays_small() {
    let (service, upstream) = (StandIn::start(denied()).await.unwrap(), Upstream::start().await.unwrap());
    let envoy = Envoy::start(&Overlay::new(service.port(), upstream.port()).plugin(&plugin())).await.unwrap();
    let fresh = envoy.wasm_memories_kib().unwrap();
    // Each worker's, the main thread's, and the one that they were made from.
    assert_eq!(fresh.len(), 4, "{fresh:?}");

    flood(&envoy, "denied", 800).await;
    let count = async |verdict: &str| {
        envoy.metric(&format!("sluicegate_requests_total{{rule=\"rest\",verdict=\"{verdict}\"}}")).await.unwrap()
    };
    assert_eq!(count("over_limit").await, 16_000);
    service.reply_with(Reply::answer(500, "").marked());
    flood(&envoy, "local", 200).await;
    assert_eq!(count("failure_local").await + count("failure_local_denied").await, 4000);

    let full = envoy.wasm_memories_kib().unwrap();
    eprintln!("KiB of the VMs: {fresh:?} fresh, {full:?} after 20,000 requests");
    assert!(full.iter().all(|kib| *kib < VM_KIB), "{full:?}");
    assert!(full.iter().sum::<u64>() > fresh.iter().sum(), "nothing was kept: {full:?}");
}
