//! Redis dead, frozen, late or forgetful.

use std::time::Duration;

use sluicegate_tests::{Client, Redis, Service, Stack, until};
use sluicegate_wire::{Problem, header};

use crate::verdict::{
    SERVICE, TIMEOUT, assert_counts, assert_failure_verdicts, assert_failure_verdicts_in_time, plugin,
};

#[tokio::test]
async fn a_killed_redis_opens_and_closes_in_time_and_comes_back() {
    let mut stack = Stack::start(SERVICE, &plugin(TIMEOUT)).await.unwrap();
    let client = stack.client().unwrap();
    assert_counts(&client, "at first").await;

    stack.redis.kill();
    assert_failure_verdicts(&client, "killed").await;
    assert_failure_verdicts_in_time(&client, "killed").await;

    stack.redis.restart().await.unwrap();
    assert_counts(&client, "killed").await;
    assert!(stack.redis.assert_all_keys_expire() > 0);
}

#[tokio::test]
async fn a_frozen_redis_opens_and_closes_in_time_and_comes_back() {
    let stack = Stack::start(SERVICE, &plugin(TIMEOUT)).await.unwrap();
    let client = stack.client().unwrap();
    assert_counts(&client, "at first").await;

    stack.redis.freeze();
    assert_failure_verdicts(&client, "frozen").await;
    assert_failure_verdicts_in_time(&client, "frozen").await;

    stack.redis.thaw();
    assert_counts(&client, "frozen").await;
}

/// The service's own deadlines: the store's timeout, or the caller's when that is shorter.
#[tokio::test]
async fn the_service_answers_503_in_time() {
    let config = SERVICE.replace("timeout: 5s", "timeout: 100ms");
    let redis = Redis::start().await.unwrap();
    let service = Service::start(&config, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let allowed = async || (client.take("wide", "u", 1).await.unwrap().status == 200).then_some(());
    // The first one on a busy machine may take longer than the store's timeout.
    until("a take to be allowed", Duration::from_secs(10), allowed).await.unwrap();

    redis.freeze();
    for _ in 0..3 {
        let answer = client.take("wide", "u", 1).await.unwrap();
        assert_eq!(answer.status, 503, "{answer:?}");
        assert!(answer.header(header::MARKER).is_some());
        assert_eq!(answer.header("content-type"), Some(Problem::CONTENT_TYPE));
        assert!(answer.elapsed <= Duration::from_millis(100) + TIMEOUT, "{:?}", answer.elapsed);
    }
    redis.thaw();
    until("takes to be allowed again", Duration::from_secs(10), allowed).await.unwrap();
}

#[tokio::test]
async fn the_service_starts_without_redis_and_gets_ready_by_itself() {
    let mut redis = Redis::reserve().unwrap();
    let service = Service::start_unready(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    assert_eq!(client.get("/healthz").await.unwrap().status, 200);
    assert_eq!(client.get("/readyz").await.unwrap().status, 503);
    assert_eq!(client.take("wide", "u", 1).await.unwrap().status, 503);

    redis.restart().await.unwrap();
    until("the service to be ready", Duration::from_secs(10), async || {
        (client.get("/readyz").await.unwrap().status == 200).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(client.take("wide", "u", 1).await.unwrap().status, 200);
}

/// A Redis that restarted or failed over has no scripts: the service loads them and asks again, unseen.
#[tokio::test]
async fn a_flushed_script_cache_costs_no_check() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let mut connection = redis.connection().await.unwrap();
    for round in 1..=10 {
        assert_eq!(client.take("wide", "u", 1).await.unwrap().status, 200, "round {round}");
        redis::cmd("SCRIPT").arg("FLUSH").exec_async(&mut connection).await.unwrap();
    }
    let body = client.take("wide", "u", 0).await.unwrap().json();
    assert_eq!(body["results"][0]["remaining"], 99_990, "each was charged once: {body}");
}

/// A server that answers but takes no writes is no store: unready, 503, and found again by itself.
#[tokio::test]
async fn a_store_that_takes_no_writes_is_not_ready() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let mut connection = redis.connection().await.unwrap();
    let refusing: [(&[&str], &[&str]); 2] = [
        (&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
        (&["CONFIG", "SET", "maxmemory", "1mb"], &["CONFIG", "SET", "maxmemory", "0"]),
    ];
    for (refuse, accept) in refusing {
        let mut run = async |words: &[&str]| {
            redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut connection).await.unwrap();
        };
        run(refuse).await;
        let ready = async |status| (client.get("/readyz").await.unwrap().status == status).then_some(());
        until("the service to be unready", Duration::from_secs(10), async || ready(503).await).await.unwrap();
        assert_eq!(client.take("wide", "u", 1).await.unwrap().status, 503, "{refuse:?}");
        assert_eq!(client.get("/readyz").await.unwrap().status, 503, "ready again by {refuse:?}");
        run(accept).await;
        until("the service to be ready", Duration::from_secs(10), async || ready(200).await).await.unwrap();
        assert_eq!(client.take("wide", "u", 1).await.unwrap().status, 200, "{accept:?}");
    }
}

/// Calls are spread over the connections, and together find out that the server is silent on all of them.
#[tokio::test]
async fn five_calls_in_a_row_find_a_frozen_redis_whatever_the_connections() {
    for connections in [1, 8] {
        let config = SERVICE.replace("timeout: 5s", &format!("timeout: 100ms, connections: {connections}"));
        let redis = Redis::start().await.unwrap();
        let service = Service::start(&config, &redis.url()).await.unwrap();
        let client = Client::new(service.port()).unwrap();
        assert_eq!(client.take("wide", "u", 1).await.unwrap().status, 200);
        redis.freeze();
        // The service's own probe may be the one that finds out.
        let mut waited = 0;
        while client.get("/readyz").await.unwrap().status == 200 {
            let answer = client.take("wide", "u", 1).await.unwrap();
            assert_eq!(answer.status, 503, "{answer:?}");
            waited += 1;
            assert!(waited <= 5, "with {connections} connections: {answer:?}");
        }
        redis.thaw();
    }
}
