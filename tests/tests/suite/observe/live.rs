//! A real Prometheus scrapes a real service and a real Envoy, before and after the store fails.

use std::{collections::BTreeSet, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Client, Prometheus, Stack, until};

use super::{alerts, dashboard, labels_after, read, scrape::Scraped, without_variables};

const DEADLINE: Duration = Duration::from_secs(60);

const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  few: { limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }] }
  many: { limits: [{ name: burst, capacity: 100000, refill: 100000, per: 1s }] }
";

/// The alerts that a store that is down makes fire here; others keep their patience.
const OF_THE_STORE: [&str; 6] = [
    "SluicegateBreakerOpen",
    "SluicegateChecksFailing",
    "SluicegateFailingClosed",
    "SluicegateFailingLocal",
    "SluicegateFailingOpen",
    "SluicegateStoreDown",
];

/// A rule for each thing that is counted.
fn plugin() -> Value {
    let rule = |name: &str, policy: Value, more: Value| {
        let limit = json!({ "policy": policy, "key": [{ "header": "x-account" }] });
        let mut rule =
            json!({ "name": name, "match": { "path": { "prefix": format!("/{name}") } }, "limits": [limit] });
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        rule
    };
    let chosen = json!({ "from": { "header": "x-plan" }, "map": { "gold": "many" }, "default": "many" });
    let optional = json!({ "policy": "many", "key": [{ "header": "x-optional", "missing": "skip" }] });
    let local = json!({ "local": { "capacity": 1, "refill": 1, "per": "1d", "slots": 32 } });
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [
            rule("open", json!("few"), json!({ "on_failure": "open" })),
            rule("closed", chosen, json!({ "on_failure": "closed" })),
            rule("local", json!("many"), json!({ "on_failure": local })),
            rule("shadow", json!("few"), json!({ "shadow": true })),
            rule("charge", json!("many"), json!({ "charge": { "only_status": [401] } })),
            json!({ "name": "skip", "match": { "path": { "prefix": "/skip" } }, "limits": [optional] }),
        ],
        "breaker": { "failures": 3, "open_for": "1s" },
        "deny_cache": { "max_entries": 100, "max_life": "60s" },
    })
}

/// Requests of each kind, some of them denied.
async fn traffic(client: &Client) {
    for path in ["/open", "/closed", "/local", "/shadow", "/charge", "/skip", "/unmatched"] {
        for _ in 0..4 {
            let headers = [("x-account", "alice"), ("x-plan", "unheard-of")];
            client.send(Method::GET, path, &headers).await.unwrap();
        }
    }
}

/// The file as it stands, but for what must be quick, and for the targets, which have no names here.
fn configuration(stack: &Stack) -> Value {
    let mut config = read("prometheus/prometheus.yml");
    config["global"] = json!({ "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s" });
    let ports = [("sluicegate", stack.service.admin_port()), ("envoy", stack.envoy.admin_port())];
    for job in config["scrape_configs"].as_array_mut().unwrap() {
        let (_, port) = ports.iter().find(|(name, _)| job["job_name"] == *name).unwrap();
        job.as_object_mut().unwrap().remove("dns_sd_configs").unwrap();
        job["static_configs"] = json!([{ "targets": [format!("127.0.0.1:{port}")] }]);
    }
    config
}

/// The file as it stands, but that what is waited for fires soon.
fn impatient_alerts() -> Value {
    let mut rules = read("prometheus/alerts.yml");
    for group in rules["groups"].as_array_mut().unwrap() {
        for alert in group["rules"].as_array_mut().unwrap() {
            if OF_THE_STORE.contains(&alert["alert"].as_str().unwrap()) {
                alert["for"] = "1s".into();
            }
        }
    }
    rules
}

/// Every expression that is shown or alarms: whose it is, what it is, and the labels that are shown of its series.
fn expressions() -> Vec<(String, String, Vec<String>)> {
    let dashboard = dashboard();
    let mut all = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row") {
        for target in panel["targets"].as_array().unwrap() {
            let shown = labels_after(target["legendFormat"].as_str().unwrap(), "{{");
            let expression = without_variables(target["expr"].as_str().unwrap());
            all.push((panel["title"].to_string(), expression, shown.into_iter().map(str::to_owned).collect()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap().iter().filter(|one| one["type"] == "query") {
        let query = variable["query"]["query"].as_str().unwrap();
        let values = query.strip_prefix("label_values(").and_then(|query| query.strip_suffix(')')).unwrap();
        let (expression, label) = values.rsplit_once(", ").unwrap();
        all.push((variable["name"].to_string(), without_variables(expression), vec![label.to_owned()]));
    }
    all
}

/// The alerts in this state.
async fn in_state(prometheus: &Prometheus, state: &str) -> Vec<Value> {
    let mut alerts = prometheus.alerts().await.unwrap();
    alerts.retain(|alert| alert["state"] == state);
    alerts
}

#[tokio::test]
async fn a_store_that_fails_is_told_and_every_expression_has_data() {
    let mut stack = Stack::start(SERVICE, &plugin()).await.unwrap();
    let prometheus = Prometheus::start(&configuration(&stack), &impatient_alerts()).await.unwrap();
    until("both to be scraped", DEADLINE, async || {
        (prometheus.query("up == 1").await.unwrap().len() == 2).then_some(())
    })
    .await
    .unwrap();

    let client = stack.client().unwrap();
    traffic(&client).await;
    until("the denials to be scraped", DEADLINE, async || {
        let denied = "rate(sluicegate_checks_total{verdict=\"over_limit\"}[5m]) > 0";
        (!prometheus.query(denied).await.unwrap().is_empty()).then_some(())
    })
    .await
    .unwrap();
    assert_eq!(in_state(&prometheus, "firing").await, [] as [Value; 0], "nothing is wrong yet");

    stack.redis.kill();
    let fired = until("the alerts to fire", DEADLINE, async || {
        traffic(&client).await;
        // More accounts than there are slots for.
        for account in 0..40 {
            client.send(Method::GET, "/local", &[("x-account", &account.to_string())]).await.unwrap();
        }
        let fired = in_state(&prometheus, "firing").await;
        let names: BTreeSet<_> = fired.iter().map(|alert| alert["labels"]["alertname"].as_str().unwrap()).collect();
        OF_THE_STORE.iter().all(|name| names.contains(name)).then(|| fired.clone())
    })
    .await
    .unwrap();
    for alert in fired {
        let text = alert["annotations"].to_string();
        assert!(!text.contains("no value") && !text.contains("error"), "{text}");
    }

    check_names(&stack).await;
    // Of Envoy's statistics, histograms come last.
    for (whose, expression, shown) in expressions() {
        let series = until(&format!("{whose}: data of {expression}"), DEADLINE, async || {
            let series = prometheus.query(&expression).await.unwrap_or_else(|error| panic!("{whose}: {error}"));
            (!series.is_empty()).then_some(series)
        })
        .await
        .unwrap();
        for label in &shown {
            let all = series.iter().all(|series| series["metric"][label].is_string());
            assert!(all, "{whose}: {expression} has no {label}: {series:?}");
        }
    }
}

/// Every metric and label that is asked for is one that somebody says.
async fn check_names(stack: &Stack) {
    let mut scraped = Scraped::new();
    scraped.add(stack.service.admin_port(), "/metrics").await;
    scraped.add(stack.envoy.admin_port(), "/stats/prometheus").await;
    let expressions = expressions().into_iter().map(|(whose, expression, _)| (whose, expression));
    let rules =
        alerts().into_iter().map(|alert| (alert["alert"].to_string(), alert["expr"].as_str().unwrap().to_owned()));
    for (whose, expression) in expressions.chain(rules) {
        let missing = scraped.missing(&expression);
        assert!(missing.is_empty(), "{whose}: {expression}: nobody says {missing:?}");
    }
}
