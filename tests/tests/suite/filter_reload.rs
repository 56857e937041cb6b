//! A new configuration for a proxy that runs, by a listener's file.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Envoy, Overlay, Redis, Service, Upstream, until};
use sluicegate_wire::header;
use tokio::{task::JoinSet, time::timeout};

use crate::verdict::assert_counted;

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  old: { limits: [{ name: old, capacity: 1000000, refill: 1000000, per: 1d, interval: true }] }
  new: { limits: [{ name: new, capacity: 3, refill: 3, per: 1d, interval: true }] }
";

fn plugin(policy: &str, failure_field: &str) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "all", "limits": [{ "policy": policy, "key": [{ "header": "x-account" }] }], failure_field: "closed",
        }],
    })
}

/// Asks on one connection, for as long as the proxy keeps it, until the new limit denies. An answer that doesn't come
/// is a panic.
async fn ask_until_denied(client: Client, account: String) -> Vec<Answer> {
    let mut answers = Vec::new();
    loop {
        let answer = ask(&client, &account).await;
        let is_denied = answer.status == 429;
        answers.push(answer);
        if is_denied {
            return answers;
        }
    }
}

async fn ask(client: &Client, account: &str) -> Answer {
    client.send(Method::GET, "/", &[("x-account", account)]).await.unwrap()
}

fn limit(answer: &Answer) -> &str {
    let policy = answer.header(header::RATE_LIMIT_POLICY).unwrap_or_else(|| panic!("{answer:?}"));
    &policy[1..4]
}

async fn until_stat(envoy: &Envoy, name: &str, expected: u64) {
    until(&format!("{name} to be {expected}"), Duration::from_secs(20), async || {
        (envoy.stat(name).await.unwrap() == expected).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_good_one_holds_at_once_and_drops_nobody_and_a_bad_one_changes_nothing() {
    let redis = Redis::start().await.unwrap();
    let (service, upstream) = (Service::start(SERVICE, &redis.url()).await.unwrap(), Upstream::start().await.unwrap());
    let overlay = |plugin: Value| Overlay::new(service.port(), upstream.port()).plugin(&plugin);
    let envoy = Envoy::start_following(&overlay(plugin("old", "on_failure"))).await.unwrap();
    let newcomer = || Client::new(envoy.port()).unwrap();
    until_stat(&envoy, "listener_manager.lds.update_success", 1).await;

    envoy.push(&overlay(plugin("new", "on_failur"))).unwrap();
    until_stat(&envoy, "listener_manager.lds.update_rejected", 1).await;
    for _ in 0..8 {
        let answer = ask(&newcomer(), "a").await;
        assert_counted(&answer);
        assert_eq!(limit(&answer), "old");
    }
    let log = envoy.process().log();
    let complaint = log.lines().find(|line| line.contains("sluicegate: ")).unwrap_or_default();
    assert!(complaint.contains("rules[0]") && complaint.contains("on_failur"), "{log}");

    let users: JoinSet<_> = (0..4).map(|user| ask_until_denied(newcomer(), format!("user-{user}"))).collect();
    until("users", Duration::from_secs(10), async || (!upstream.take_seen().is_empty()).then_some(())).await.unwrap();
    envoy.push(&overlay(plugin("new", "on_failure"))).unwrap();
    until_stat(&envoy, "listener_manager.lds.update_success", 2).await;
    // Each worker takes it in its own time.
    until("the new limit", Duration::from_secs(10), async || {
        let answers = [ask(&newcomer(), "b").await, ask(&newcomer(), "b").await, ask(&newcomer(), "b").await];
        answers.iter().all(|answer| limit(answer) == "new").then_some(())
    })
    .await
    .unwrap();
    let mut passed = 0;
    for _ in 0..12 {
        let answer = ask(&newcomer(), "c").await;
        assert_eq!(limit(&answer), "new");
        passed += u32::from(answer.status == 200);
    }
    assert_eq!(passed, 3);
    // The old listener's connections end, each between two requests.
    for answers in timeout(Duration::from_secs(30), users.join_all()).await.unwrap() {
        let limits: Vec<_> = answers.iter().map(limit).collect();
        let old = limits.iter().take_while(|limit| **limit == "old").count();
        assert!(old > 0);
        answers[..old].iter().for_each(assert_counted);
        let new: Vec<_> = answers[old..].iter().map(|answer| (limit(answer), answer.status)).collect();
        assert_eq!(new, [("new", 200), ("new", 200), ("new", 200), ("new", 429)]);
    }
}
