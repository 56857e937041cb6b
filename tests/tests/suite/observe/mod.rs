//! Dashboard and alerts in `observe/`: they are well formed, name what service and filter really say, and tell of a fault.
//!
//! Nothing here starts Grafana, of which there is no package to run: the dashboard's form is checked, and each of its
//! expressions by Prometheus.

mod board;
mod expression;
mod live;
mod rules;
mod scrape;
mod values;

use std::fs;

use serde_json::Value;
use sluicegate_tests::repository;

/// A file of `observe/`, YAML or JSON.
fn read(path: &str) -> Value {
    let text = fs::read_to_string(repository("observe").join(path)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn dashboard() -> Value {
    read("grafana/dashboards/sluicegate.json")
}

/// All alerts, whatever their group.
fn alerts() -> Vec<Value> {
    let groups = read("prometheus/alerts.yml")["groups"].as_array().unwrap().clone();
    groups.iter().flat_map(|group| group["rules"].as_array().unwrap().clone()).collect()
}

/// An expression of the dashboard with its variables replaced as Grafana does while everything is chosen.
fn without_variables(expression: &str) -> String {
    expression
        .replace("$__rate_interval", "5m")
        .replace("$instance", ".*")
        .replace("$policy", ".*")
        .replace("$proxy", ".*")
        .replace("$rule", ".*")
}

/// The labels in a legend or an annotation: what stands between `before` and the end of the word.
fn labels_after<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let word = |rest: &'a str| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    text.split(before).skip(1).map(word).collect()
}
