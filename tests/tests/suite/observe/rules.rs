//! The alerts, judged by promtool, and what the README says of them.

use std::{collections::BTreeSet, fs, process::Command};

use serde_json::Value;
use sluicegate_tests::{Tool, repository};

use super::{alerts, expression::names, labels_after, read};

/// Runs promtool beside the files, whose paths in each other are relative.
fn promtool(arguments: &[&str]) {
    let mut promtool = Command::new(Tool::Promtool.path().unwrap());
    let output = promtool.args(arguments).current_dir(repository("observe/prometheus")).output().unwrap();
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "promtool {arguments:?}:\n{out}{error}");
}

fn text<'a>(alert: &'a Value, pointer: &str) -> &'a str {
    alert.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {alert}"))
}

#[test]
fn prometheus_takes_its_configuration() {
    promtool(&["check", "config", "prometheus.yml"]);
    promtool(&["check", "rules", "alerts.yml"]);
}

#[test]
fn each_alert_fires_for_its_cause_alone() {
    promtool(&["test", "rules", "alerts_test.yml"]);
    let tests = fs::read_to_string(repository("observe/prometheus/alerts_test.yml")).unwrap();
    for alert in alerts() {
        let fires = format!("alertname=\"{}\",alertstate=\"firing\"", text(&alert, "/alert"));
        assert!(tests.contains(&fires), "no test sees {fires}");
    }
}

#[test]
fn each_alert_says_what_it_means_and_what_to_do_first() {
    for alert in alerts() {
        assert!(["critical", "warning"].contains(&text(&alert, "/labels/severity")), "{alert}");
        assert!(!text(&alert, "/for").is_empty());
        let (summary, description) = (text(&alert, "/annotations/summary"), text(&alert, "/annotations/description"));
        assert!(!summary.ends_with('.') && summary.len() < 100, "{summary}");
        assert!(description.contains("irst "), "what to do first? {description}");
        // Without a grouping an alert has all labels that the series of its metric have.
        let grouping = names(text(&alert, "/expr")).grouping;
        let grouped = text(&alert, "/expr").contains("sum by");
        for label in [labels_after(summary, "$labels."), labels_after(description, "$labels.")].concat() {
            assert!(!grouped || grouping.iter().any(|kept| kept == label), "{alert} loses {label}");
        }
    }
}

#[test]
fn the_readme_lists_the_alerts() {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let table = readme.split("| alert |").nth(1).unwrap().split("\n\n").next().unwrap();
    let listed: BTreeSet<(String, String)> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(alert, rest)| (alert.to_owned(), rest.split(" |").next().unwrap().to_owned()))
        .collect();
    let alerts = alerts();
    let there = alerts.iter().map(|alert| (text(alert, "/alert"), text(alert, "/labels/severity")));
    assert_eq!(there.map(|(alert, severity)| (alert.to_owned(), severity.to_owned())).collect::<BTreeSet<_>>(), listed);
}

/// Inside of the compose project the services are named as here, and listen where their own files say.
#[test]
fn the_targets_are_where_the_configurations_put_them() {
    let config = read("prometheus/prometheus.yml");
    let ports = |file: &str, pointer: &str| {
        let file: Value = serde_saphyr::from_str(&fs::read_to_string(repository(file)).unwrap()).unwrap();
        file.pointer(pointer).unwrap().to_string().trim_matches('"').rsplit(':').next().unwrap().to_owned()
    };
    let admin = ports("sluicegate.yaml", "/admin/listen");
    let proxy = ports("envoy/envoy.yaml", "/admin/address/socket_address/port_value");
    for (job, name, port) in [(0, "sluicegate", admin), (1, "envoy", proxy)] {
        let job = &config["scrape_configs"][job];
        let found = &job["dns_sd_configs"][0];
        assert_eq!((&job["job_name"], &found["names"][0]), (&name.into(), &name.into()));
        assert_eq!((&found["type"], found["port"].to_string()), (&"A".into(), port));
    }
}
