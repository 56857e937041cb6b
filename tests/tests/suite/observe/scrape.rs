//! What a scrape has: metrics with their labels.

use std::collections::{BTreeMap, BTreeSet};

use sluicegate_tests::Client;

use super::expression::names;

/// Labels that Prometheus adds.
const ADDED: [&str; 2] = ["job", "instance"];
/// Metrics that Prometheus makes itself.
const OWN: [(&str, &[&str]); 2] = [("up", &[]), ("ALERTS", &["alertname", "alertstate", "severity"])];

#[derive(Debug, Default)]
pub(super) struct Scraped(BTreeMap<String, BTreeSet<String>>);

impl Scraped {
    pub(super) fn new() -> Self {
        let own = OWN.map(|(name, labels)| (name.to_owned(), labels.iter().map(|&label| label.to_owned()).collect()));
        Self(own.into())
    }

    /// Adds what there is at `path`.
    pub(super) async fn add(&mut self, port: u16, path: &str) {
        let text = String::from_utf8(Client::new(port).unwrap().get(path).await.unwrap().body).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            for (metric, labels) in names(line).metrics {
                self.0.entry(metric).or_default().extend(labels);
            }
        }
    }

    /// What of an expression's names there is not.
    pub(super) fn missing(&self, expression: &str) -> Vec<String> {
        let names = names(expression);
        let mut missing = Vec::new();
        let mut known: BTreeSet<&str> = ADDED.into();
        for (metric, labels) in &names.metrics {
            let Some(found) = self.0.get(metric) else {
                missing.push(metric.clone());
                continue;
            };
            known.extend(found.iter().map(String::as_str));
            let unknown = labels.iter().filter(|label| !found.contains(*label) && !ADDED.contains(&label.as_str()));
            missing.extend(unknown.map(|label| format!("{metric}{{{label}}}")));
        }
        // `label_replace` makes labels, so what it makes is left to the server.
        let made = expression.contains("label_replace");
        let ungrouped = names.grouping.iter().filter(|label| !made && !known.contains(label.as_str()));
        missing.extend(ungrouped.map(|label| format!("grouped by {label}")));
        missing
    }
}
