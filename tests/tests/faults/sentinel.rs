//! A master and its replicas under Sentinel.

use std::time::Instant;

use sluicegate_tests::Sentinels;

use crate::{
    load::{RATE, assert_back_soon, assert_in_time, load, service},
    row::Outcome,
};

pub(crate) async fn killed() -> Outcome {
    let mut sentinels = Sentinels::start().await.unwrap();
    let (_service, client) = service(&sentinels.url()).await;
    let load = load(&client);
    load.go_on_for(RATE.into()).await.unwrap();
    let master = sentinels.master().await.unwrap();
    let killed = Instant::now();
    sentinels.kill(master).await.unwrap();
    sentinels.taken_over(master).await.unwrap();
    let taken_over = Instant::now();
    load.go_on_for(RATE.into()).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let seen = format!("a new master after {:.1} s", (taken_over - killed).as_secs_f64());
    Outcome::of(&samples, Some(assert_back_soon(&samples, taken_over)), seen)
}

/// The old master goes on as a replica: nothing is refused, and yet the service must move.
pub(crate) async fn replaced() -> Outcome {
    let sentinels = Sentinels::start().await.unwrap();
    let (_service, client) = service(&sentinels.url()).await;
    let load = load(&client);
    load.go_on_for(RATE.into()).await.unwrap();
    let began = Instant::now();
    sentinels.fail_over().await.unwrap();
    let replaced = Instant::now();
    load.go_on_for(RATE.into()).await.unwrap();
    let samples = load.stop().await;

    assert_in_time(&samples);
    let seen = format!("replaced in {:.1} s", (replaced - began).as_secs_f64());
    Outcome::of(&samples, Some(assert_back_soon(&samples, replaced)), seen)
}
