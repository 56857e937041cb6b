//! Exactly what a bucket holds, however many ask at once, over however many services.

use std::time::Duration;

use sluicegate_tests::{Ask, Client, Cluster, FaultProxy, Redis, Samples, Service, Traffic, burst};
use tokio::task::JoinSet;

use crate::{load::config, row::Outcome};

/// A slow machine must not turn an answer into a failure.
const PATIENCE: Duration = Duration::from_secs(30);
/// What the policy `tight` holds.
const CAPACITY: usize = 5_000;

/// A burst on the one bucket over all services: exactly its capacity is allowed, and the rest denied.
async fn exactly(services: &[Service], requests: u64, concurrency: usize) -> Samples {
    let mut bursts = JoinSet::new();
    for service in services {
        let port = service.port();
        bursts
            .spawn(async move { burst(port, requests, concurrency, |_| Ask::take("tight", "one", 1)).await.unwrap() });
    }
    let samples = Samples::new(bursts.join_all().await.iter().flat_map(|samples| samples.iter().cloned()));
    assert_eq!(samples.failed(), 0, "{samples:?}");
    assert_eq!(samples.allowed(), CAPACITY, "{samples:?}");
    assert_eq!(samples.denied(), services.len() * requests as usize - CAPACITY);
    samples
}

async fn start(services: usize, store_url: &str) -> Vec<Service> {
    let mut started = Vec::new();
    for _ in 0..services {
        started.push(Service::start(&config(PATIENCE), store_url).await.unwrap());
    }
    started
}

pub(crate) async fn two_services() -> Outcome {
    let redis = Redis::start().await.unwrap();
    let services = start(2, &redis.url()).await;
    Outcome::of(&exactly(&services, CAPACITY as u64, 200).await, None, "")
}

pub(crate) async fn ten_thousand_at_once() -> Outcome {
    let redis = Redis::start().await.unwrap();
    let services = start(1, &redis.url()).await;
    let before = scripts(&redis).await;
    let samples = exactly(&services, 10_000, 10_000).await;
    let seen = format!("{} scripts for 10,000 decisions", scripts(&redis).await - before);
    Outcome::of(&samples, None, seen)
}

async fn scripts(redis: &Redis) -> u64 {
    let field = redis.node().info("commandstats", "cmdstat_evalsha").await.unwrap().unwrap_or_default();
    field.strip_prefix("calls=").and_then(|calls| calls.split(',').next()?.parse().ok()).unwrap_or(0)
}

/// What exceeds the calls that may be under way is refused at once, and counted; the rest is decided.
pub(crate) async fn flood() -> Outcome {
    const MAX_IN_FLIGHT: usize = 50;
    let redis = Redis::start().await.unwrap();
    let config = config(PATIENCE).replace("timeout:", &format!("max_in_flight: {MAX_IN_FLIGHT}, timeout:"));
    let proxy = FaultProxy::start_with(redis.port(), Traffic::Delay(Duration::from_millis(50))).await.unwrap();
    let mut service = Service::start(&config, &format!("redis://127.0.0.1:{}", proxy.port())).await.unwrap();
    let admin = Client::new(service.admin_port()).unwrap();
    let shed = async || {
        let text = String::from_utf8(admin.get("/metrics").await.unwrap().body).unwrap();
        let line =
            text.lines().find_map(|line| line.strip_prefix(r#"sluicegate_store_failures_total{reason="overloaded"} "#));
        line.unwrap_or_else(|| panic!("no such count in {text}")).parse::<usize>().unwrap()
    };
    assert_eq!(shed().await, 0);
    let port = service.port();
    // Each on a key of its own, so that none waits for another.
    let flood = async |requests| {
        burst(port, requests, 1_000, |turn| Ask::take("wide", format!("user-{turn}"), 1)).await.unwrap()
    };
    // Enough for what is bounded by itself, such as the busiest subjects, to be full.
    let flooded = flood(5_000).await;
    let memory_kib = service.process().resident_kib().unwrap();
    let again = flood(10_000).await;
    let grown_kib = service.process().resident_kib().unwrap().saturating_sub(memory_kib);
    for sample in flooded.iter().chain(again.iter()).filter(|sample| !sample.is_allowed()) {
        assert!(sample.status == Some(503) && sample.detail.contains("too many calls"), "{sample:?}");
    }
    assert!(flooded.allowed() >= MAX_IN_FLIGHT, "{flooded:?}");
    let refused = flooded.failed() + again.failed();
    assert!(refused > 0, "{flooded:?}");
    assert_eq!(shed().await, refused);
    assert!(grown_kib < 8 * 1024, "the service grew by {grown_kib} KiB");
    let all = Samples::new(flooded.iter().chain(again.iter()).cloned());
    Outcome::of(&all, None, format!("{refused} refused at once, grown by {grown_kib} KiB"))
}

/// One key for everybody lives on one node of the cluster: joined takes make it as cheap there as on a single Redis.
pub(crate) async fn constant_key() -> Outcome {
    const REQUESTS: u64 = 5_000;
    const CONCURRENCY: usize = 100;
    let decisions = 4.0 * REQUESTS as f64;
    let redis = Redis::start().await.unwrap();
    let services = start(4, &redis.url()).await;
    let before = scripts(&redis).await;
    exactly(&services, REQUESTS, CONCURRENCY).await;
    let on_one = (scripts(&redis).await - before) as f64 / decisions;
    drop(services);

    let cluster = Cluster::start().await.unwrap();
    let services = start(4, &cluster.url()).await;
    let before = cluster.calls("evalsha").await.unwrap();
    let samples = exactly(&services, REQUESTS, CONCURRENCY).await;
    let on_cluster = (cluster.calls("evalsha").await.unwrap() - before) as f64 / decisions;
    // How many travel together depends on how fast each is, which moves by a third from run to run.
    assert!(on_cluster <= on_one * 1.5, "{on_cluster} scripts a decision, on one node {on_one}");
    Outcome::of(&samples, None, format!("{on_cluster:.3} scripts a decision, on one node {on_one:.3}"))
}
