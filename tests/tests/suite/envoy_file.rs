//! `envoy/envoy.yaml` as a user runs it, and the forms of the plugin's configuration.

use serde_json::{Value, json};
use sluicegate_tests::{Envoy, Overlay};

fn overlay() -> Overlay {
    Overlay::new(8080, 9000)
}

fn plugin(failure_field: &str) -> Value {
    json!({
        "service": { "cluster": "sluicegate" },
        "rules": [{ "name": "a", "limits": [{ "policy": "p", "key": ["client_ip"] }], failure_field: "closed" }],
    })
}

#[test]
fn envoy_takes_the_file_as_it_stands() {
    Envoy::validate(&overlay()).unwrap();
}

#[test]
fn envoy_takes_the_file_with_its_own_filter() {
    Envoy::validate(&Overlay::rate_limit_filter(8080, 9000)).unwrap();
}

#[test]
fn the_rules_may_be_text_as_well() {
    Envoy::validate(&overlay().plugin_text(&plugin("on_failure").to_string())).unwrap();
}

/// The filter reads its configuration during validation, so a mistake in it never reaches a running proxy.
#[test]
fn a_mistake_in_the_rules_is_refused_by_name() {
    for overlay in [overlay().plugin(&plugin("on_failur")), overlay().plugin_text(&plugin("on_failur").to_string())] {
        let error = Envoy::validate(&overlay).unwrap_err().to_string();
        assert!(error.contains("on_failur") && error.contains("rules[0]"), "{error}");
    }
}
