//! The configuration changes while the service runs.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use sluicegate_tests::{Client, Redis, Service, Signal, until};
use tokio::task::JoinSet;

/// Nothing comes back before a test is over.
fn policy(capacity: u64) -> Value {
    json!({ "limits": [{ "name": "day", "capacity": capacity, "refill": capacity, "per": "1d", "interval": true }] })
}

fn with_policies(config: &str, policies: &Value) -> String {
    let mut config: Value = serde_json::from_str(config).unwrap();
    config["policies"] = policies.clone();
    config.to_string()
}

/// A service with these policies, its limits in its own process, and how to ask it.
async fn start(policies: &Value) -> (Service, Client) {
    let config = json!({ "store": { "url": "memory://", "timeout": "5s" }, "policies": policies });
    let service = Service::start(&config.to_string(), "memory://").await.unwrap();
    let client = Client::new(service.port()).unwrap();
    (service, client)
}

/// Puts another file in the place of the configuration, as editors and deployments do.
fn rename(service: &Service, text: &str) {
    let new = service.config().with_extension("new");
    fs::write(&new, text).unwrap();
    fs::rename(new, service.config()).unwrap();
}

fn written(service: &Service) -> String {
    fs::read_to_string(service.config()).unwrap()
}

/// Waits until a policy is there, or not.
async fn until_status(client: &Client, policy: &str, status: u16) {
    until(&format!("{policy} is {status}"), Duration::from_secs(10), async || {
        (client.take(policy, "k", 0).await.unwrap().status == status).then_some(())
    })
    .await
    .unwrap();
}

/// Waits for a log line with all of these words.
async fn until_logged(service: &Service, words: &[&str]) {
    until(&format!("{words:?} in the log"), Duration::from_secs(10), async || logged(service, words).then_some(()))
        .await
        .unwrap();
}

fn logged(service: &Service, words: &[&str]) -> bool {
    service.log().unwrap().lines().any(|line| words.iter().all(|word| line.contains(word)))
}

async fn metric(service: &Service, name: &str) -> f64 {
    let metrics = Client::new(service.admin_port()).unwrap().get("/metrics").await.unwrap();
    let text = String::from_utf8(metrics.body).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

const SUCCESSES: &str = r#"sluicegate_config_reloads_total{result="ok"}"#;
const FAILURES: &str = r#"sluicegate_config_reloads_total{result="failed"}"#;

#[tokio::test]
async fn a_change_is_seen_however_it_is_made() {
    let (mut service, client) = start(&json!({ "first": policy(1) })).await;
    let text = |name: &str| with_policies(&written(&service), &json!({ name: policy(1) }));

    rename(&service, &text("renamed"));
    until_status(&client, "renamed", 200).await;
    assert_eq!(client.take("first", "k", 1).await.unwrap().status, 404);

    fs::write(service.config(), text("in-place")).unwrap();
    until_status(&client, "in-place", 200).await;

    // A ConfigMap is a symlink to a file in `..data`, itself a symlink that is swapped.
    let folder = service.config().parent().unwrap().to_owned();
    let version = |name: &str, text: &str| {
        fs::create_dir(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("sluicegate.yaml"), text).unwrap();
        symlink(name, folder.join("..data_tmp")).unwrap();
        fs::rename(folder.join("..data_tmp"), folder.join("..data")).unwrap();
    };
    version("..1", &text("in-place"));
    symlink(Path::new("..data/sluicegate.yaml"), folder.join("link")).unwrap();
    fs::rename(folder.join("link"), service.config()).unwrap();
    version("..2", &text("swapped"));
    until_status(&client, "swapped", 200).await;
    fs::remove_dir_all(folder.join("..1")).unwrap();
    version("..3", &text("swapped-again"));
    until_status(&client, "swapped-again", 200).await;
    // None was tried twice, and the move behind a symlink was no change.
    assert_eq!((metric(&service, SUCCESSES).await, metric(&service, FAILURES).await), (4.0, 0.0));

    let text = text("asked");
    rename(&service, &text);
    service.process().signal(Signal::HUP).unwrap();
    until_status(&client, "asked", 200).await;
}

#[tokio::test]
async fn a_hangup_is_answered_in_the_log_whatever_it_finds() {
    let (mut service, client) = start(&json!({ "api": policy(1) })).await;
    service.process().signal(Signal::HUP).unwrap();
    until_logged(&service, &["the configuration is as it was"]).await;
    assert_eq!(metric(&service, SUCCESSES).await, 0.0);

    rename(&service, "");
    until_logged(&service, &["refused: ", "sluicegate.yaml:1:1: the file is empty"]).await;
    let refusals = |service: &Service| service.log().unwrap().matches("refused: ").count();
    assert_eq!(refusals(&service), 1);
    service.process().signal(Signal::HUP).unwrap();
    let told_again = async || (refusals(&service) == 2).then_some(());
    until("a second refusal", Duration::from_secs(10), told_again).await.unwrap();
    assert_eq!(client.take("api", "k", 1).await.unwrap().status, 200);
}

#[tokio::test]
async fn what_is_no_configuration_changes_nothing_and_is_told_once() {
    let (service, client) = start(&json!({ "api": policy(100) })).await;
    let good = written(&service);
    let two_faults = with_policies(&good, &json!({ "api": policy(0), "b": policy(0) }));
    let big = format!("{good}\n#{}", "x".repeat(5 << 20));
    let no_policies = with_policies(&good, &json!({}));
    let unknown = good.replacen(r#""policies""#, r#""polices": {}, "policies""#, 1);
    let bad: [(&[u8], &[&str]); 8] = [
        (b"", &["sluicegate.yaml:1:1: ", "the file is empty"]),
        (b"# Nothing\n", &["sluicegate.yaml:1:1: ", "the file is empty"]),
        (b"policies: [\n", &["sluicegate.yaml:2:1: "]),
        (unknown.as_bytes(), &["sluicegate.yaml:1:", "polices: "]),
        (no_policies.as_bytes(), &["sluicegate.yaml:1:", "policies: is empty"]),
        (two_faults.as_bytes(), &["sluicegate.yaml:1:", "policies.api.limits[0].capacity: is 0", "(and 1 more"]),
        (big.as_bytes(), &["sluicegate.yaml: can't be read: it is over 4194304 bytes"]),
        (b"\xff\xfe", &["sluicegate.yaml: can't be read: ", "UTF-8"]),
    ];
    let mut failures = 0.0;
    for (text, words) in bad {
        fs::write(service.config(), text).unwrap();
        failures += 1.0;
        until("another refusal", Duration::from_secs(10), async || {
            (metric(&service, FAILURES).await >= failures).then_some(())
        })
        .await
        .unwrap();
        assert!(logged(&service, &[&["refused: "], words].concat()), "{words:?} in {}", service.log().unwrap());
        assert_eq!(client.take("api", "k", 1).await.unwrap().status, 200);
        assert_eq!(metric(&service, "sluicegate_config_last_reload_successful").await, 0.0);
    }
    fs::remove_file(service.config()).unwrap();
    until_logged(&service, &["refused: ", "sluicegate.yaml: can't be read: No such file"]).await;
    // A second look, which SIGHUP is not needed for, tells nothing again.
    rename(&service, &format!("{good}\n"));
    until("the good one", Duration::from_secs(10), async || {
        (metric(&service, "sluicegate_config_last_reload_successful").await == 1.0).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(service.log().unwrap().matches("refused: ").count(), bad.len() + 1);
    assert_eq!((metric(&service, SUCCESSES).await, metric(&service, FAILURES).await), (1.0, failures + 1.0));
    // Nothing came back and nothing was lost meanwhile.
    assert_eq!(client.take("api", "k", 0).await.unwrap().json()["results"][0]["remaining"], 92);
}

#[tokio::test]
async fn a_policy_that_is_gone_is_a_404_and_a_changed_one_keeps_its_tokens() {
    let redis = Redis::start().await.unwrap();
    let config =
        json!({ "store": { "url": "", "timeout": "5s" }, "policies": { "api": policy(10), "gone": policy(1) } });
    let service = Service::start(&config.to_string(), &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    assert_eq!(client.take("api", "k", 7).await.unwrap().status, 200);
    assert_eq!(client.take("gone", "k", 1).await.unwrap().status, 200);

    rename(&service, &with_policies(&written(&service), &json!({ "api": policy(20) })));
    until_status(&client, "gone", 404).await;
    let gone = client.take("gone", "k", 1).await.unwrap();
    assert_eq!(gone.header("content-type"), Some("application/problem+json"));
    assert_eq!(gone.json()["detail"], r#"checks[0].policy: there is no policy "gone""#);
    let result = client.take("api", "k", 1).await.unwrap().json()["results"][0].clone();
    assert_eq!((&result["capacity"], &result["remaining"]), (&json!(20), &json!(2)), "{result}");

    rename(&service, &with_policies(&written(&service), &json!({ "api": policy(1), "gone": policy(1) })));
    until_status(&client, "gone", 200).await;
    assert_eq!(client.take("gone", "k", 1).await.unwrap().status, 429, "its bucket was forgotten");
    let result = client.take("api", "k", 1).await.unwrap().json()["results"][0].clone();
    assert_eq!((&result["capacity"], &result["remaining"]), (&json!(1), &json!(0)), "{result}");
    assert_eq!(client.take("api", "k", 1).await.unwrap().status, 429);
}

#[tokio::test]
async fn other_fields_wait_for_a_restart_and_hold_up_no_policies() {
    let (service, client) = start(&json!({ "api": policy(1) })).await;
    let mut config: Value = serde_json::from_str(&written(&service)).unwrap();
    config["store"]["url"] = "redis://127.0.0.1:1".into();
    config["drain"] = "1s".into();
    config["policies"] = json!({ "new": policy(1) });
    rename(&service, &config.to_string());
    until_status(&client, "new", 200).await;
    until_logged(&service, &["only after a restart", r#"fields="drain, store.url""#]).await;
}

#[tokio::test]
async fn under_load_each_answer_is_of_one_set() {
    const ASKERS: usize = 8;
    const RELOADS: u64 = 20;
    // Each set has a capacity of its own, the same for both of its policies.
    let set = |nth: u64| json!({ "a": policy(1_000_000 + nth), "b": policy(1_000_000 + nth) });
    let (mut service, client) = start(&set(0)).await;
    let config = written(&service);
    let done = Arc::new(AtomicBool::new(false));
    let mut askers = JoinSet::new();
    for asker in 0..ASKERS {
        let (client, done) = (Client::new(service.port()).unwrap(), Arc::clone(&done));
        // Some share a subject, so that their takes travel together.
        let key = format!("k{}", asker % 3);
        let both = json!({ "checks": [{ "policy": "a", "key": key }, { "policy": "b", "key": key }] });
        askers.spawn(async move {
            let (mut asked, mut newest) = (0_u64, 0);
            while !done.load(Ordering::Relaxed) {
                let answer = client.check(&both).await.unwrap();
                assert_eq!(answer.status, 200, "{answer:?}");
                let results = answer.json()["results"].clone();
                let capacity = |nth: usize| results[nth]["capacity"].as_u64().unwrap();
                assert_eq!(capacity(0), capacity(1), "{results}");
                assert!(capacity(0) >= newest, "an older set came back: {results}");
                (asked, newest) = (asked + 1, capacity(0));
            }
            asked
        });
    }
    for nth in 1..=RELOADS {
        rename(&service, &with_policies(&config, &set(nth)));
        service.process().signal(Signal::HUP).unwrap();
        until("the next set", Duration::from_secs(10), async || {
            let answer = client.take("a", "other", 0).await.unwrap();
            (answer.json()["results"][0]["capacity"] == 1_000_000 + nth).then_some(())
        })
        .await
        .unwrap();
    }
    done.store(true, Ordering::Relaxed);
    let asked = askers.join_all().await;
    assert!(asked.iter().all(|asked| *asked > RELOADS), "{asked:?}");
}
