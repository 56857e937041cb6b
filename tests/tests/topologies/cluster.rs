//! A real Redis Cluster: found, failed over, resharded.

use std::time::Duration;

use redis::{RedisResult, ServerErrorKind, aio::MultiplexedConnection};
use sluicegate_tests::{Client, Cluster, FaultProxy, Service, Traffic, until};

const KEY: &str = "{user}a";
const OTHER_KEY: &str = "{user}b";

async fn set(connection: &mut MultiplexedConnection, keys: &[&str]) -> RedisResult<()> {
    let script = "for _, key in ipairs(KEYS) do redis.call('SET', key, 1, 'EX', 100) end";
    redis::cmd("EVAL").arg(script).arg(keys.len()).arg(keys).query_async(connection).await
}

#[track_caller]
fn kind(result: RedisResult<()>) -> Option<ServerErrorKind> {
    match result.expect_err("an error").kind() {
        redis::ErrorKind::Server(kind) => Some(kind),
        _ => None,
    }
}

#[tokio::test]
#[ignore = "starts a cluster: cargo xtask test --all"]
async fn three_masters_serve_all_slots() {
    let start = std::time::Instant::now();
    let cluster = Cluster::start().await.unwrap();
    eprintln!("cluster up in {:?}", start.elapsed());
    assert_eq!(cluster.url().matches("127.0.0.1:").count(), 3);
    for (slot, master) in [(0, 0), (5460, 0), (5461, 1), (10_922, 1), (10_923, 2), (16_383, 2)] {
        assert_eq!(cluster.master_of_slot(slot).await.unwrap(), master, "slot {slot}");
        assert_eq!(cluster.replicas_of(master).await.unwrap(), [master + 3]);
    }
    // The example of the cluster specification, appendix A.
    assert_eq!(cluster.slot("123456789").await.unwrap(), 0x31C3);

    let master = cluster.master_of(KEY).await.unwrap();
    let mut connection = cluster.connection(master).await.unwrap();
    let before = cluster.calls("eval").await.unwrap();
    set(&mut connection, &[KEY, OTHER_KEY]).await.unwrap();
    assert_eq!(cluster.calls("eval").await.unwrap(), before + 1);
    let mut elsewhere = cluster.connection((master + 1) % 3).await.unwrap();
    assert_eq!(kind(set(&mut elsewhere, &[KEY]).await), Some(ServerErrorKind::Moved));

    let load = async || cluster.node(master).run::<String>(&["SCRIPT", "LOAD", "return 1"]).await.unwrap();
    let sha = load().await;
    let exists = async || cluster.node(master).run::<[bool; 1]>(&["SCRIPT", "EXISTS", &sha]).await.unwrap();
    assert_eq!(exists().await, [true]);
    cluster.flush_scripts().await.unwrap();
    assert_eq!(exists().await, [false]);
}

#[tokio::test]
#[ignore = "starts a cluster: cargo xtask test --all"]
async fn a_replica_takes_a_killed_masters_place() {
    let start = std::time::Instant::now();
    let mut cluster = Cluster::start().await.unwrap();
    eprintln!("cluster up in {:?}", start.elapsed());
    let (slot, old) = (cluster.slot(KEY).await.unwrap(), cluster.master_of(KEY).await.unwrap());
    let start = std::time::Instant::now();
    cluster.kill(old).await.unwrap();
    let new = cluster.taken_over(slot, old).await.unwrap();
    eprintln!("killed master replaced in {:?}", start.elapsed());
    assert_eq!(new, old + 3);
    set(&mut cluster.connection(new).await.unwrap(), &[KEY]).await.unwrap();

    cluster.restart(old).await.unwrap();
    cluster.settled().await.unwrap();
    assert_eq!(cluster.replicas_of(new).await.unwrap(), [old]);
    let start = std::time::Instant::now();
    assert_eq!(cluster.fail_over(new).await.unwrap(), old);
    eprintln!("planned failover in {:?}", start.elapsed());

    // A frozen node is left out until it goes on, and then isn't the master any more. Another than the one that has just
    // failed over twice.
    let frozen = (old + 1) % 3;
    let slot = [0, 5461, 10_923][frozen];
    let start = std::time::Instant::now();
    cluster.freeze(frozen);
    assert_eq!(cluster.taken_over(slot, frozen).await.unwrap(), frozen + 3);
    eprintln!("frozen master replaced in {:?}", start.elapsed());
    cluster.thaw(frozen);
    cluster.settled().await.unwrap();
    assert_eq!(cluster.master_of_slot(slot).await.unwrap(), frozen + 3);
}

#[tokio::test]
#[ignore = "starts a cluster: cargo xtask test --all"]
async fn a_slot_moves_step_by_step() {
    let cluster = Cluster::start().await.unwrap();
    let slot = cluster.slot(KEY).await.unwrap();
    let from = cluster.master_of_slot(slot).await.unwrap();
    let to = (from + 1) % 3;
    let mut connection = cluster.connection(from).await.unwrap();
    set(&mut connection, &[KEY, OTHER_KEY]).await.unwrap();

    let migration = cluster.migrate(slot, to).await.unwrap();
    assert_eq!((migration.from, migration.to), (from, to));
    set(&mut connection, &[KEY, OTHER_KEY]).await.unwrap();
    assert_eq!(migration.keys(10).await.unwrap().len(), 2);
    migration.move_keys(&[KEY.to_owned()]).await.unwrap();
    assert_eq!(kind(set(&mut connection, &[KEY]).await), Some(ServerErrorKind::Ask));
    assert_eq!(kind(set(&mut connection, &[KEY, OTHER_KEY]).await), Some(ServerErrorKind::TryAgain));
    set(&mut connection, &[OTHER_KEY]).await.unwrap();

    migration.finish().await.unwrap();
    assert_eq!(kind(set(&mut connection, &[KEY]).await), Some(ServerErrorKind::Moved));
    assert_eq!(cluster.master_of_slot(slot).await.unwrap(), to);
    set(&mut cluster.connection(to).await.unwrap(), &[KEY, OTHER_KEY]).await.unwrap();
    cluster.assert_all_keys_expire();
}

#[tokio::test]
#[ignore = "starts a cluster: cargo xtask test --all"]
async fn clients_are_sent_through_the_proxies() {
    let start = std::time::Instant::now();
    let mut cluster = Cluster::start_behind_proxies().await.unwrap();
    eprintln!("cluster behind proxies up in {:?}", start.elapsed());
    let slots: Vec<redis::Value> = cluster.node(0).run(&["CLUSTER", "SLOTS"]).await.unwrap();
    let told = format!("{slots:?}");
    for index in 0..6 {
        assert!(told.contains(&format!("int({})", cluster.port(index))), "node {index}: {told}");
        assert!(!told.contains(&format!("int({})", cluster.node(index).port())), "node {index}: {told}");
    }

    let master = cluster.master_of(KEY).await.unwrap();
    let url = format!("redis://127.0.0.1:{}", cluster.port(master));
    let accepted = cluster.proxy(master).accepted();
    let mut connection = redis::Client::open(url.clone()).unwrap().get_multiplexed_async_connection().await.unwrap();
    set(&mut connection, &[KEY]).await.unwrap();
    assert!(cluster.proxy(master).accepted() > accepted);

    // Clients can't come through, but the nodes see each other, so nobody takes over.
    cluster.proxy(master).set(Traffic::Refuse).await.unwrap();
    set(&mut connection, &[KEY]).await.unwrap_err();
    assert_eq!(cluster.master_of(KEY).await.unwrap(), master);
    cluster.proxy(master).set(Traffic::Pass).await.unwrap();
    cluster.settled().await.unwrap();

    cluster.kill(master).await.unwrap();
    let refused = std::net::TcpStream::connect(("127.0.0.1", cluster.port(master))).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let slot = cluster.slot(KEY).await.unwrap();
    cluster.taken_over(slot, master).await.unwrap();
    cluster.restart(master).await.unwrap();
    cluster.settled().await.unwrap();
    assert!((0..6).map(|index| cluster.proxy(index)).all(|proxy: &FaultProxy| proxy.open() < 20));
}

#[tokio::test]
#[ignore = "starts a cluster: cargo xtask test --all"]
#[should_panic(expected = "a key never expires")]
async fn a_key_without_a_ttl_fails_the_test() {
    let cluster = Cluster::start().await.unwrap();
    let master = cluster.master_of(KEY).await.unwrap();
    cluster.node(master).run::<()>(&["SET", KEY, "1"]).await.unwrap();
}

/// The URL of a single server leads to one node: most keys are elsewhere, so the service is not ready and says why.
#[tokio::test]
#[ignore = "starts a cluster: cargo xtask test --all"]
async fn a_service_that_takes_a_node_for_a_server_is_not_ready() {
    const CONFIG: &str = "
store: { url: x, timeout: 5s }
policies: { one: { limits: [{ name: day, capacity: 1, refill: 1, per: 1d, interval: true }] } }
";
    let cluster = Cluster::start().await.unwrap();
    for node in 0..3 {
        let url = format!("redis://127.0.0.1:{}", cluster.port(node));
        let service = Service::start_unready(CONFIG, &url).await.unwrap();
        let client = Client::new(service.port()).unwrap();
        until("the reason", Duration::from_secs(10), async || {
            let answer = client.get("/readyz").await.unwrap();
            assert_eq!(answer.status, 503, "node {node}");
            String::from_utf8(answer.body).unwrap().contains("use a redis+cluster:// URL").then_some(())
        })
        .await
        .unwrap();
    }
}
