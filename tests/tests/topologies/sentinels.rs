//! Real Sentinels: agreed, failed over by order and by death.

use std::time::Instant;

use sluicegate_tests::{Sentinels, Traffic};

#[tokio::test]
#[ignore = "starts Sentinel: cargo xtask test --all"]
async fn a_replica_takes_the_masters_place() {
    let start = Instant::now();
    let mut sentinels = Sentinels::start().await.unwrap();
    eprintln!("sentinels up in {:?}", start.elapsed());
    assert!(sentinels.url().starts_with("redis+sentinel://127.0.0.1:") && sentinels.url().ends_with("/sluice"));
    assert_eq!(sentinels.master().await.unwrap(), 0);
    sentinels.node(0).run::<()>(&["SET", "key", "1", "EX", "100"]).await.unwrap();
    sentinels.settled().await.unwrap();

    let start = Instant::now();
    let ordered = sentinels.fail_over().await.unwrap();
    eprintln!("planned failover in {:?}", start.elapsed());
    assert_ne!(ordered, 0);
    sentinels.settled().await.unwrap();
    eprintln!("settled again after {:?}", start.elapsed());
    let read_only = sentinels.node(0).run::<()>(&["SET", "key", "1", "EX", "100"]).await.unwrap_err();
    assert!(format!("{read_only:#}").to_lowercase().contains("read"), "{read_only:#}");

    // Two Sentinels are enough.
    sentinels.kill_sentinel(0);
    let start = Instant::now();
    sentinels.kill(ordered).await.unwrap();
    let new = sentinels.taken_over(ordered).await.unwrap();
    eprintln!("killed master replaced in {:?}", start.elapsed());
    assert_ne!(new, ordered);
    assert_eq!(sentinels.node(new).run::<u8>(&["GET", "key"]).await.unwrap(), 1);

    let start = Instant::now();
    sentinels.restart_sentinel(0).await.unwrap();
    sentinels.restart(ordered).await.unwrap();
    sentinels.settled().await.unwrap();
    eprintln!("settled again after {:?}", start.elapsed());
    assert_eq!(sentinels.master().await.unwrap(), new);

    let start = Instant::now();
    sentinels.sentinel(2).freeze();
    sentinels.node(new).freeze();
    let last = sentinels.taken_over(new).await.unwrap();
    eprintln!("frozen master replaced in {:?}", start.elapsed());
    assert_ne!(last, new);
    sentinels.sentinel(2).thaw();
    sentinels.node(new).thaw();
    sentinels.settled().await.unwrap();
}

#[tokio::test]
#[ignore = "starts Sentinel: cargo xtask test --all"]
async fn proxies_are_announced_and_what_they_stop_is_down() {
    let start = Instant::now();
    let sentinels = Sentinels::start_behind_proxies().await.unwrap();
    eprintln!("sentinels behind proxies up in {:?}", start.elapsed());
    let told: (String, u16) =
        sentinels.sentinel(1).run(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sluice"]).await.unwrap();
    assert_eq!(told, ("127.0.0.1".to_owned(), sentinels.proxy(0).port()));
    assert_ne!(sentinels.port(0), sentinels.node(0).port());

    sentinels.proxy(0).set(Traffic::Drop).await.unwrap();
    let new = sentinels.taken_over(0).await.unwrap();
    sentinels.proxy(0).set(Traffic::Pass).await.unwrap();
    sentinels.settled().await.unwrap();
    assert_eq!(sentinels.master().await.unwrap(), new);
}

#[tokio::test]
#[ignore = "starts Sentinel: cargo xtask test --all"]
#[should_panic(expected = "a key never expires")]
async fn a_key_without_a_ttl_fails_the_test() {
    let sentinels = Sentinels::start().await.unwrap();
    sentinels.node(0).run::<()>(&["SET", "leak", "1"]).await.unwrap();
}
