//! A Redis that doesn't take: dead, frozen, out of reach, a replica, full, busy.

use std::time::{Duration, Instant};

use sluicegate_tests::{Client, FaultProxy, Redis, Service, Traffic, until};

use crate::{
    load::{RATE, TIMEOUT, assert_back_soon, assert_charged_once, assert_in_time, back_after, config, load, service},
    row::Outcome,
};

/// Requests in a second of load.
const SECOND: u64 = RATE as u64;

pub(crate) async fn killed() -> Outcome {
    let mut redis = Redis::start().await.unwrap();
    let (_service, client) = service(&redis.url()).await;
    let load = load(&client);
    load.go_on_for(SECOND / 2).await.unwrap();
    let killed = Instant::now();
    redis.kill();
    load.go_on_for(SECOND).await.unwrap();
    let restarted = Instant::now();
    redis.restart().await.unwrap();
    let back = Instant::now();
    load.go_on_for(SECOND).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let down = samples.sent_in(killed..restarted);
    assert_eq!((down.allowed(), down.denied()), (0, 0), "decided without Redis: {down:?}");
    assert_eq!(samples.count(killed..restarted, Some(503)), down.len(), "{down:?}");
    // What was charged before is gone with the old Redis.
    assert_charged_once(&client, &samples.sent_in(restarted..Instant::now())).await;
    let seen = format!("median while down {:.1} ms", down.median().as_secs_f64() * 1000.0);
    Outcome::of(&samples, Some(assert_back_soon(&samples, back)), seen)
}

pub(crate) async fn frozen() -> Outcome {
    let redis = Redis::start().await.unwrap();
    let (mut service, client) = service(&redis.url()).await;
    let load = load(&client);
    load.go_on_for(SECOND).await.unwrap();
    let connections = || async { redis.node().info("stats", "total_connections_received").await.unwrap().unwrap() };
    let connected: u64 = connections().await.parse().unwrap();
    let memory_kib = service.process().resident_kib().unwrap();
    redis.freeze();
    load.go_on_for(SECOND * 5).await.unwrap();
    let grown_kib = service.process().resident_kib().unwrap().saturating_sub(memory_kib);
    let thawed = Instant::now();
    redis.thaw();
    load.go_on_for(SECOND).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let back_after = assert_back_soon(&samples, thawed);
    assert_charged_once(&client, &samples).await;
    assert!(grown_kib < 8 * 1024, "the service grew by {grown_kib} KiB");
    let connected = connections().await.parse::<u64>().unwrap() - connected;
    assert!(connected <= 40, "{connected} connections to a frozen Redis");
    Outcome::of(&samples, Some(back_after), format!("grown by {grown_kib} KiB, {connected} new connections"))
}

/// How soon after an address answers: the kernel sends the first packet again after a second, and after three.
const REACHED_WITHIN: Duration = Duration::from_secs(4);

pub(crate) async fn drops_packets() -> Outcome {
    let redis = Redis::start().await.unwrap();
    let proxy = FaultProxy::start_with(redis.port(), Traffic::Drop).await.unwrap();
    let url = format!("redis://127.0.0.1:{}", proxy.port());
    let service = Service::start_unready(&config(TIMEOUT), &url).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    assert_eq!(client.get("/readyz").await.unwrap().status, 503);
    let load = load(&client);
    load.go_on_for(SECOND).await.unwrap();
    assert_eq!(client.get("/healthz").await.unwrap().status, 200);
    assert_eq!(client.get("/readyz").await.unwrap().status, 503);
    let reachable = Instant::now();
    proxy.set(Traffic::Pass).await.unwrap();
    until("the service to be ready", REACHED_WITHIN, async || {
        (client.get("/readyz").await.unwrap().status == 200).then_some(())
    })
    .await
    .unwrap();
    load.go_on_for(SECOND / 4).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let back_after = back_after(&samples, reachable);
    let before = samples.sent_in(samples.iter().next().unwrap().sent_at..reachable);
    assert_eq!(before.failed(), before.len(), "{before:?}");
    assert_charged_once(&client, &samples).await;
    Outcome::of(&samples, Some(back_after), "")
}

/// A fault that a command begins and another ends, and what a failed check's detail then says.
async fn switched(begin: &[&str], end: &[&str], detail: &str) -> Outcome {
    let redis = Redis::start().await.unwrap();
    let (_service, client) = service(&redis.url()).await;
    let load = load(&client);
    load.go_on_for(SECOND / 2).await.unwrap();
    let began = Instant::now();
    redis.node().run::<redis::Value>(begin).await.unwrap();
    until("the service to be unready", Duration::from_secs(5), async || {
        (client.get("/readyz").await.unwrap().status == 503).then_some(())
    })
    .await
    .unwrap();
    let unready = Instant::now();
    load.go_on_for(SECOND).await.unwrap();
    let ended = Instant::now();
    redis.node().run::<redis::Value>(end).await.unwrap();
    load.go_on_for(SECOND).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let faulty = samples.sent_in(unready..ended);
    assert!(faulty.failed() > 0, "{faulty:?}");
    for sample in faulty.iter().filter(|sample| sample.is_failed()) {
        assert!(sample.status == Some(503) && sample.detail.contains(detail), "{sample:?}");
    }
    assert_charged_once(&client, &samples).await;
    let seen = format!("unready after {:.0} ms", (unready - began).as_secs_f64() * 1000.0);
    Outcome::of(&samples, Some(assert_back_soon(&samples, ended)), seen)
}

pub(crate) async fn demoted() -> Outcome {
    switched(&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"], "read only").await
}

pub(crate) async fn full() -> Outcome {
    switched(&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"], "maxmemory").await
}

pub(crate) async fn busy() -> Outcome {
    const SLOW_SCRIPT: &str = "
        local function now_ms()
            local time = redis.call('TIME')
            return time[1] * 1000 + time[2] / 1000
        end
        local start = now_ms()
        repeat until now_ms() - start > 2000";
    let redis = Redis::start().await.unwrap();
    // From then on it answers BUSY, before that nothing at all.
    redis.node().run::<()>(&["CONFIG", "SET", "busy-reply-threshold", "1000"]).await.unwrap();
    let (_service, client) = service(&redis.url()).await;
    let load = load(&client);
    load.go_on_for(SECOND / 2).await.unwrap();
    let mut connection = redis.connection().await.unwrap();
    connection.set_response_timeout(Duration::from_secs(10));
    redis::cmd("EVAL").arg(SLOW_SCRIPT).arg(0).exec_async(&mut connection).await.unwrap();
    let done = Instant::now();
    load.go_on_for(SECOND).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    assert!(samples.failed() > 0, "{samples:?}");
    assert_charged_once(&client, &samples).await;
    Outcome::of(&samples, Some(assert_back_soon(&samples, done)), "")
}
