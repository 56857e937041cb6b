//! `on_failure: local`: what this proxy admits while there is nobody to ask.

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Port, Upstream};
use sluicegate_wire::{Problem, header};
use tokio::task::JoinSet;

fn plugin(local: &Value) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "all",
            "limits": [{ "policy": "p", "key": [{ "header": "x-account" }] }],
            "on_failure": { "local": local },
        }],
    })
}

/// Envoy with two workers and a service that refuses connections.
async fn start(local: &Value) -> (Envoy, Upstream, Port) {
    let (nobody, upstream) = (Port::lease().unwrap(), Upstream::start().await.unwrap());
    let overlay = Overlay::new(nobody.number(), upstream.port()).plugin(&plugin(local));
    (Envoy::start(&overlay).await.unwrap(), upstream, nobody)
}

/// Passed and denied of `requests` at once, each on a connection of its own, so that both workers have their share. The
/// accounts take turns.
async fn at_once(envoy: &Envoy, requests: usize, accounts: usize) -> (Vec<usize>, usize) {
    let mut tasks = JoinSet::new();
    for index in 0..requests {
        let (client, account) = (Client::new(envoy.port()).unwrap(), index % accounts);
        tasks.spawn(async move {
            let header = format!("user-{account}");
            (account, client.send(Method::GET, "/", &[("x-account", &header)]).await.unwrap())
        });
    }
    let (mut passed, mut denied) = (vec![0; accounts], 0);
    for (account, answer) in tasks.join_all().await {
        assert_eq!(answer.reason(), Some("failure_local"), "{answer:?}");
        match answer.status {
            200 => passed[account] += 1,
            429 => {
                denied += 1;
                assert_eq!(answer.header("content-type"), Some(Problem::CONTENT_TYPE));
                assert_eq!(answer.json()["type"], Problem::TEMPORARY_REDUCED_CAPACITY);
                let wait: u64 = answer.header(header::RETRY_AFTER).unwrap().parse().unwrap();
                assert!((8_600..=8_640).contains(&wait), "{wait} s");
            }
            status => panic!("{status}: {answer:?}"),
        }
    }
    (passed, denied)
}

#[tokio::test]
async fn each_account_gets_exactly_its_capacity_from_two_workers() {
    let (envoy, upstream, _nobody) = start(&json!({ "capacity": 10, "refill": 10, "per": "1d" })).await;
    let (passed, denied) = at_once(&envoy, 240, 6).await;
    assert_eq!((passed, denied), (vec![10; 6], 180));
    assert_eq!(upstream.take_seen().len(), 60);
    for worker in 0..2 {
        let connections = envoy.stat(&format!("worker_{worker}.downstream_cx_total")).await.unwrap();
        assert!(connections > 0, "worker {worker} had none");
    }
    let count = async |verdict: &str| {
        envoy.metric(&format!("sluicegate_requests_total{{rule=\"all\",verdict=\"{verdict}\"}}")).await.unwrap()
    };
    assert_eq!((count("failure_local").await, count("failure_local_denied").await), (60, 180));
}

#[tokio::test]
async fn a_flood_of_accounts_gets_no_more_than_the_slots_hold() {
    let (envoy, _upstream, _nobody) = start(&json!({ "capacity": 2, "refill": 20, "per": "2d", "slots": 32 })).await;
    // 31 accounts have a bucket each; the others share the last one.
    let (passed, _) = at_once(&envoy, 300, 100).await;
    assert_eq!(passed.iter().sum::<usize>(), 64);
    assert!(envoy.metric(r#"sluicegate_local_overflow_total{rule="all"}"#).await.unwrap() > 200);
}
