//! What people set, ask and read is in the documents: a new field, endpoint or metric that isn't fails here.

use std::{collections::BTreeSet, fs};

use serde_json::Value;
use sluicegate_tests::{Client, Service, repository};

const SERVICE: &str = "
store: { url: 'memory://' }
policies: { api: { limits: [{ name: burst, capacity: 1, refill: 1, per: 1s }] } }
";

fn read(path: &str) -> String {
    fs::read_to_string(repository(path)).unwrap()
}

/// The names of all fields that a schema knows.
fn fields(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(properties)) = members.get("properties") {
                names.extend(properties.keys().cloned());
            }
            members.values().for_each(|member| fields(member, names));
        }
        Value::Array(members) => members.iter().for_each(|member| fields(member, names)),
        _ => {}
    }
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').collect()
}

fn check_fields(schema: &str, documents: [&str; 2]) {
    let mut names = BTreeSet::new();
    fields(&serde_json::from_str(&read(schema)).unwrap(), &mut names);
    assert!(names.len() > 40, "{schema}: {names:?}");
    let text = documents.map(read).concat();
    let known = words(&text);
    let missing: Vec<_> = names.iter().filter(|name| !known.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "{schema} has fields that {documents:?} don't: {missing:?}");
}

#[test]
fn the_fields_of_the_service() {
    check_fields("sluicegate.schema.json", ["README.md", "sluicegate.yaml"]);
}

#[test]
fn the_fields_of_the_filter() {
    check_fields("envoy/filter-config.schema.json", ["README.md", "envoy/envoy.yaml"]);
}

#[tokio::test]
async fn the_endpoints() {
    let service = Service::start(SERVICE, "memory://").await.unwrap();
    let readme = read("README.md");
    for port in [service.port(), service.admin_port()] {
        let document = Client::new(port).unwrap().get("/openapi.json").await.unwrap().json();
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.len() > 3, "{paths:?}");
        for path in paths.keys() {
            assert!(readme.contains(path.as_str()), "the README says nothing of {path}");
        }
    }
}

/// The names that the filter can give to metrics stand in its source, each as a text that ends a line of one table.
#[test]
fn the_metrics_of_the_filter() {
    let source = read("filter/core/src/metric.rs");
    let names: Vec<_> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Self::")?.split_once("=> \"")?.1.strip_suffix("\","))
        .collect();
    assert!(names.len() >= 11, "{names:?}");
    let readme = read("README.md");
    for name in names {
        assert!(readme.contains(&format!("| `sluicegate_{name}` |")), "the README's table lacks sluicegate_{name}");
    }
}
