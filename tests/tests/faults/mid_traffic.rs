//! What happens to a Redis that goes on working: its scripts flushed, its clients cut off.

use std::time::{Duration, Instant};

use sluicegate_tests::{Redis, until};

use crate::{
    load::{BACK_WITHIN, assert_charged_once, assert_in_time, load, service},
    row::Outcome,
};

const ROUNDS: u64 = 20;

pub(crate) async fn scripts_flushed() -> Outcome {
    let redis = Redis::start().await.unwrap();
    let (_service, client) = service(&redis.url()).await;
    let load = load(&client);
    let loads = async || {
        let field = redis.node().info("commandstats", "cmdstat_script|load").await.unwrap().unwrap_or_default();
        field.strip_prefix("calls=").and_then(|calls| calls.split(',').next()?.parse::<u64>().ok()).unwrap_or(0)
    };
    load.go_on_for(50).await.unwrap();
    let before = loads().await;
    for _ in 0..ROUNDS {
        redis.node().run::<()>(&["SCRIPT", "FLUSH"]).await.unwrap();
        load.go_on_for(20).await.unwrap();
    }
    let loaded = loads().await - before;
    let samples = load.stop().await;

    assert_eq!(samples.failed(), 0, "{samples:?}");
    assert_in_time(&samples);
    assert_charged_once(&client, &samples).await;
    // Four scripts over each of two links, at most.
    assert!(loaded <= ROUNDS * 8, "{loaded} scripts loaded for {ROUNDS} flushes");
    Outcome::of(&samples, None, format!("{loaded} SCRIPT LOAD for {ROUNDS} flushes"))
}

pub(crate) async fn clients_killed() -> Outcome {
    /// Until the news of the other connection's end has reached the service too, it looks open.
    const NEWS: Duration = Duration::from_millis(25);
    let redis = Redis::start().await.unwrap();
    let (_service, client) = service(&redis.url()).await;
    let load = load(&client);
    let mut kills = Vec::new();
    for _ in 0..ROUNDS {
        load.go_on_for(40).await.unwrap();
        let begin = Instant::now();
        let mut connection = redis.connection().await.unwrap();
        let mut kill = redis::cmd("CLIENT");
        kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]).exec_async(&mut connection).await.unwrap();
        // All connections are cut, and until one is there again checks fail at once.
        until("the service to be back", BACK_WITHIN, async || {
            (client.take("wide", "bystander", 0).await.unwrap().status == 200).then_some(())
        })
        .await
        .unwrap();
        kills.push(begin..Instant::now() + NEWS);
    }
    load.go_on_for(40).await.unwrap();
    let samples = load.stop().await;

    for failed in samples.iter().filter(|sample| sample.is_failed()) {
        let in_flight = kills.iter().any(|kill| failed.sent_at <= kill.end && failed.ended_at() >= kill.start);
        assert!(in_flight, "nobody was cut off, and yet: {failed:?}");
    }
    assert_in_time(&samples);
    assert_charged_once(&client, &samples).await;
    Outcome::of(&samples, None, format!("all connections killed {ROUNDS} times"))
}
