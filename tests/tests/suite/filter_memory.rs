//! The memory of a worker's VM.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Port, Service, Upstream};
use tokio::task::JoinSet;

const SERVICE: &str = "
store: { url: 'memory://', timeout: 20s }
policies:
  one: { limits: [{ name: day, capacity: 1, refill: 1, per: 1d }] }
  plenty: { limits: [{ name: day, capacity: 1000000, refill: 1000000, per: 1d }] }
";

/// The bound that we promise.
const WORKER_KIB: u64 = 8 << 10;
const REQUESTS: u64 = 20_000;

/// Thirty rules, the last of which nothing leaves; caches at their defaults or above.
fn plugin() -> Value {
    let mut rules: Vec<Value> = (0..29)
        .map(|index| {
            json!({
                "name": format!("rule-{index}"),
                "match": { "methods": ["GET", "POST"], "path": { "regex": format!("/r{index}/([a-z]+/)*[0-9]{{1,20}}") } },
                "limits": [
                    { "policy": "plenty", "key": ["client_ip"] },
                    { "policy": "one", "key": [{ "header": "x-account", "secret": true }, "host"] },
                ],
                "on_failure": { "local": { "capacity": 5, "refill": 5, "per": "1h" } },
            })
        })
        .collect();
    rules.push(json!({
        "name": "rest",
        "limits": [{ "policy": "one", "key": [{ "header": "x-account" }] }],
        "on_failure": { "local": { "capacity": 5, "refill": 5, "per": "1h", "slots": 4096 } },
    }));
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": rules,
        "deny_cache": { "max_life": "1h" },
    })
}

/// `REQUESTS` requests, each account twice in a row, from many connections.
async fn flood(envoy: &Envoy, path: &str, statuses: &[u16]) {
    let (next, mut tasks) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    for _ in 0..16 {
        let (client, next) = (Client::new(envoy.port()).unwrap(), Arc::clone(&next));
        let (path, statuses) = (path.to_owned(), statuses.to_owned());
        tasks.spawn(async move {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= REQUESTS / 2 {
                    return;
                }
                let account = format!("account-{index}-{}", "x".repeat(100));
                for _ in 0..2 {
                    let answer = client.send(Method::GET, &path, &[("x-account", &account)]).await.unwrap();
                    assert!(statuses.contains(&answer.status), "{answer:?}");
                }
            }
        });
    }
    tasks.join_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_workers_vm_stays_small() {
    let mut service = Service::start(SERVICE, "memory://").await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin());
    let envoy = Envoy::start(&overlay).await.unwrap();
    let at_first = envoy.wasm_memories_kib().unwrap();
    let rss = envoy.process().resident_kib().unwrap();
    eprintln!("{at_first:?} {rss}");
    flood(&envoy, "/some/path", &[200, 429]).await;
    eprintln!("{:?} {}", envoy.wasm_memories_kib().unwrap(), envoy.process().resident_kib().unwrap());
    flood(&envoy, "/some/path", &[200, 429]).await;
    eprintln!("{:?} {}", envoy.wasm_memories_kib().unwrap(), envoy.process().resident_kib().unwrap());
    service.kill();
    flood(&envoy, "/some/path", &[200, 429]).await;
    eprintln!("{:?} {}", envoy.wasm_memories_kib().unwrap(), envoy.process().resident_kib().unwrap());
    flood(&envoy, "/r5/a/b/7", &[200, 429]).await;
    eprintln!("{:?} {}", envoy.wasm_memories_kib().unwrap(), envoy.process().resident_kib().unwrap());
}
