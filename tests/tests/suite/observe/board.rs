//! The form of the dashboard and of the files that provision it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{dashboard, read};

/// Of Grafana's own panels those that the dashboard may use: none that is deprecated.
const KINDS: [&str; 5] = ["row", "timeseries", "stat", "table", "heatmap"];

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().unwrap()
}

/// Texts of a tree, whatever the depth.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}

#[test]
fn each_panel_is_whole() {
    let dashboard = dashboard();
    assert_eq!(dashboard["uid"], "sluicegate");
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 39);
    let (mut ids, mut titles) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels(&dashboard) {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{} has the id of another", panel["title"]);
        assert!(titles.insert(panel["title"].as_str().unwrap()), "{} is there twice", panel["title"]);
        let kind = panel["type"].as_str().unwrap();
        assert!(KINDS.contains(&kind), "{kind}");
        if kind == "row" {
            continue;
        }
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{}", panel["title"]);
        assert!(!panel["fieldConfig"]["defaults"]["unit"].as_str().unwrap().is_empty(), "{}", panel["title"]);
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{} shows nothing", panel["title"]);
        let references: BTreeSet<_> = targets.iter().map(|target| target["refId"].as_str().unwrap()).collect();
        assert_eq!(references.len(), targets.len(), "{}: {references:?}", panel["title"]);
    }
}

#[test]
fn no_panel_covers_another() {
    let dashboard = dashboard();
    let mut cells = BTreeSet::new();
    for panel in panels(&dashboard) {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(w > 0 && h > 0 && x + w <= 24, "{}", panel["title"]);
        for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(cells.insert(cell), "{} covers another panel at {cell:?}", panel["title"]);
        }
    }
}

#[test]
fn variables_that_are_used_are_there_and_the_other_way_round() {
    let dashboard = dashboard();
    let list = dashboard["templating"]["list"].as_array().unwrap();
    let defined: BTreeSet<_> = list.iter().map(|variable| variable["name"].as_str().unwrap()).collect();
    let mut all = Vec::new();
    texts(&dashboard, &mut all);
    let used: BTreeSet<_> = all
        .iter()
        .flat_map(|text| text.split('$').skip(1))
        .map(|rest| rest.trim_start_matches('{'))
        .map(|rest| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap())
        // Grafana's own, and the groups of regular expressions.
        .filter(|name| !name.starts_with("__") && !name.starts_with(|c: char| c.is_ascii_digit()))
        .collect();
    assert_eq!(used, defined);
}

/// A dashboard that names a data source shows nothing elsewhere.
#[test]
fn the_data_source_is_a_choice() {
    let dashboard = dashboard();
    let mut sources = Vec::new();
    for panel in panels(&dashboard).iter().filter(|panel| panel["type"] != "row") {
        sources.push(&panel["datasource"]);
        sources.extend(panel["targets"].as_array().unwrap().iter().map(|target| &target["datasource"]));
    }
    let list = dashboard["templating"]["list"].as_array().unwrap();
    sources.extend(list.iter().filter(|variable| variable["type"] == "query").map(|variable| &variable["datasource"]));
    for source in sources {
        assert_eq!((&source["type"], &source["uid"]), (&"prometheus".into(), &"${datasource}".into()));
    }
}

#[test]
fn grafana_is_told_of_prometheus_and_of_the_folder() {
    let source = &read("grafana/provisioning/datasources/prometheus.yaml")["datasources"][0];
    assert_eq!((&source["type"], &source["url"]), (&"prometheus".into(), &"http://prometheus:9090".into()));
    // Grafana's shortest range of a rate is four intervals: a wrong one makes empty panels.
    assert_eq!(source["jsonData"]["timeInterval"], read("prometheus/prometheus.yml")["global"]["scrape_interval"]);
    let provider = &read("grafana/provisioning/dashboards/sluicegate.yaml")["providers"][0];
    let compose = read("../compose.yaml");
    let mount = format!("./observe/grafana/dashboards:{}:ro", provider["options"]["path"].as_str().unwrap());
    let mounts = compose["services"]["grafana"]["volumes"].as_array().unwrap();
    assert!(mounts.contains(&Value::from(mount)), "{mounts:?}");
}
