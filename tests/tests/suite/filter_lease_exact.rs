//! Two proxies with two workers each lease from one bucket: together they admit what it holds, and all but a hundredth of
//! it, however much is asked for.

use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Redis, Service, Upstream};
use tokio::task::JoinSet;

const CAPACITY: usize = 10_000;
/// Of each proxy, at once.
const CLIENTS: usize = 16;
/// Together four times what there is.
const REQUESTS: usize = 4 * CAPACITY / 2 / CLIENTS;

const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  hot:
    limits: [{ name: day, capacity: 10000, refill: 10000, per: 1d, interval: true }]
";

fn plugin() -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "all",
            "limits": [{ "policy": "hot", "key": [{ "constant": "all" }], "lease": { "tokens": 200, "for": "2s" } }],
            "on_failure": "closed",
        }],
    })
}

/// How many passed of a client's requests, one after another on a connection of its own.
async fn passed(port: u16) -> usize {
    let client = Client::new(port).unwrap();
    let mut passed = 0;
    for _ in 0..REQUESTS {
        let answer = client.get("/").await.unwrap();
        match answer.status {
            200 => passed += 1,
            429 => assert_eq!(answer.reason(), Some("over_limit"), "{answer:?}"),
            status => panic!("{status}: {answer:?}"),
        }
    }
    passed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_times_the_demand_gets_what_the_bucket_holds() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin());
    let envoys = [Envoy::start(&overlay).await.unwrap(), Envoy::start(&overlay).await.unwrap()];
    let mut clients = JoinSet::new();
    for envoy in &envoys {
        (0..CLIENTS).for_each(|_| drop(clients.spawn(passed(envoy.port()))));
    }
    let admitted: usize = clients.join_all().await.into_iter().sum();
    let mut hits = 0;
    for envoy in &envoys {
        hits += envoy.metric(r#"sluicegate_lease_hits_total{rule="all"}"#).await.unwrap();
        for worker in 0..2 {
            let connections = envoy.stat(&format!("worker_{worker}.downstream_cx_total")).await.unwrap();
            assert!(connections > 0, "worker {worker} had none");
        }
    }
    // What was asked of the service while there was something to have: its denials come after that.
    let metrics = Client::new(service.admin_port()).unwrap().get("/metrics").await.unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    let count = |series: &str| {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("sluicegate_{series} ")));
        line.map_or(0, |value| value.parse::<usize>().unwrap())
    };
    let checks = count(r#"checks_total{policy="hot",verdict="allowed"}"#);
    let leases = count(r#"lease_requests_total{policy="hot",verdict="allowed"}"#);
    let told = format!("{admitted} admitted, {hits} of them by {leases} leases, {checks} by checks");
    assert!((CAPACITY * 99 / 100..=CAPACITY).contains(&admitted), "{told}");
    assert!((checks + leases) * 10 < CAPACITY, "{told}");
    assert!(redis.assert_all_keys_expire() >= 1);
}
