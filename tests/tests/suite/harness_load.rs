//! The load that other tests measure with, on a real service.

use std::time::{Duration, Instant};

use sluicegate_tests::{Ask, Client, Load, Redis, Service, burst, until};

/// A bucket that nobody refills in a test's time.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  thousand:
    limits: [{ name: day, capacity: 1000, refill: 1000, per: 1d, interval: true }]
";

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_checks_at_once_are_each_answered() {
    const REQUESTS: usize = 10_000;
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let ask = |_| Ask::take("thousand", "hot", 1);
    let start = Instant::now();
    let samples = burst(service.port(), REQUESTS as u64, REQUESTS, ask).await.unwrap();
    assert_eq!(samples.len(), REQUESTS);
    assert_eq!(samples.count(start..Instant::now(), None), 0, "{samples:?}");
    assert!((1..=1000).contains(&samples.allowed()), "{samples:?}");
    assert!(samples.denied() > 0, "{samples:?}");

    // All were under way before half of them were answered.
    let mut answered: Vec<_> = samples.iter().map(|sample| sample.ended_at()).collect();
    answered.sort_unstable();
    assert!(samples.iter().all(|sample| sample.sent_at < answered[REQUESTS / 2]), "{samples:?}");
    let kib = service.process().resident_kib().unwrap();
    assert!((1000..4_000_000).contains(&kib), "{kib} KiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_is_steady_and_sees_an_outage() {
    let config = SERVICE.replace("timeout: 20s", "timeout: 100ms");
    let mut redis = Redis::start().await.unwrap();
    let service = Service::start(&config, &redis.url()).await.unwrap();
    let clients = [Client::new(service.port()).unwrap()];
    let start = Instant::now();
    let load = Load::start(&clients, 4, 100, |number| Ask::take("thousand", format!("user-{}", number % 2), 1));
    let ready = async |status| (clients[0].get("/readyz").await.unwrap().status == status).then_some(());

    redis.kill();
    let killed = Instant::now();
    until("the service to be unready", Duration::from_secs(20), async || ready(503).await).await.unwrap();
    redis.restart().await.unwrap();
    until("the service to be ready", Duration::from_secs(20), async || ready(200).await).await.unwrap();
    let back = Instant::now();
    until("some more load", Duration::from_secs(20), async || {
        (back.elapsed() > Duration::from_millis(500)).then_some(())
    })
    .await
    .unwrap();
    let samples = load.stop().await;

    let seconds = start.elapsed().as_secs_f64();
    assert!(samples.len() as f64 <= seconds * 100.0 + 4.0, "{} in {seconds} s", samples.len());
    assert!(samples.len() as f64 >= seconds * 30.0, "{} in {seconds} s", samples.len());
    assert!(samples.allowed() > 0 && samples.failed() > 0, "{samples:?}");
    assert_eq!(samples.allowed() + samples.failed(), samples.len(), "{samples:?}");
    assert_eq!(samples.count(start..killed, Some(503)), samples.sent_in(start..killed).failed(), "{samples:?}");
    assert!(samples.iter().all(|sample| sample.is_failed() != sample.detail.is_empty()), "{samples:?}");
    assert!(samples.first_decided_after(killed).unwrap().ended_at() > killed);
    assert!(samples.failures_not_spanning(killed).len() <= samples.failed());
    assert!(samples.median() <= samples.worst() && samples.worst() > Duration::ZERO);
    let by_subject = samples.by_subject();
    assert_eq!(by_subject.values().map(|samples| samples.len()).sum::<usize>(), samples.len());
    assert_eq!(by_subject.len(), 2, "{by_subject:?}");
}
