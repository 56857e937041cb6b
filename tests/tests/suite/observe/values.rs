//! The values that expressions choose series by: each is one that the README lists. One that is misspelt chooses nothing,
//! which looks like good news.

use std::fs;

use regex_lite::Regex;
use sluicegate_tests::repository;

use super::{alerts, dashboard};

/// Each value that a label of the service's or the filter's is compared with.
fn compared(expression: &str) -> Vec<String> {
    let matcher =
        Regex::new(r#"\b(?:by|kind|listener|outcome|path|reason|result|stage|verdict)(?:=~|!~|!=|=)"([^"]*)""#)
            .unwrap();
    let values = matcher.captures_iter(expression).map(|found| found[1].to_owned()).collect::<Vec<_>>();
    values.iter().flat_map(|values| values.split('|')).map(str::to_owned).collect()
}

/// What stands between backticks.
fn listed(text: &str) -> Vec<String> {
    Regex::new("`([^`\n]+)`").unwrap().captures_iter(text).map(|found| found[1].to_owned()).collect()
}

fn is_listed(value: &str, listed: &[String]) -> bool {
    let whole = Regex::new(&format!("^(?:{value})$")).unwrap();
    listed.iter().any(|word| whole.is_match(word))
}

#[test]
fn series_are_chosen_by_values_that_the_readme_lists() {
    let listed = listed(&fs::read_to_string(repository("README.md")).unwrap());
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let shown = targets.map(|target| target["expr"].as_str().unwrap().to_owned());
    let alarms = alerts().into_iter().map(|alert| alert["expr"].as_str().unwrap().to_owned());
    let mut compared_in_all = 0;
    for expression in shown.chain(alarms) {
        for value in compared(&expression) {
            assert!(is_listed(&value, &listed), "{expression}: the README knows no {value}");
            compared_in_all += 1;
        }
    }
    assert!(compared_in_all > 20, "{compared_in_all}");
}

#[test]
fn a_misspelt_value_is_found() {
    let listed = listed("`failure_open`\n```\nand `banned`");
    let found = compared(r#"rate(a{verdict=~"failure_.*|banned|baned",job="x",path!="/v1/check"}[5m])"#);
    assert_eq!(found, ["failure_.*", "banned", "baned", "/v1/check"]);
    let known: Vec<_> = found.iter().map(|value| is_listed(value, &listed)).collect();
    assert_eq!(known, [true, true, false, false]);
}
