use super::*;
use crate::config::Config;

fn policies(text: &str) -> Policies {
    let text = format!("store: {{ url: memory:// }}\npolicies: {text}");
    Config::parse("f.yaml", &text, &|_| None).unwrap_or_else(|errors| panic!("{errors}")).policies
}

const ONE: &str = "{ a: { limits: [{ name: x, capacity: 1, refill: 1, per: 1s }] } }";
const OTHER: &str = "{ b: { limits: [{ name: x, capacity: 1, refill: 1, per: 1s }] } }";

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds)
}

#[test]
fn a_set_is_replaced_as_a_whole_and_kept_by_who_has_it() {
    let live = Live::new(policies(ONE));
    let (held, first) = (live.current(), live.version());
    live.replace(policies(OTHER), Vec::new(), at(5));
    assert!(held.get("a").is_some() && held.get("b").is_none());
    let current = live.current();
    assert!(current.get("a").is_none() && current.get("b").is_some());
    assert_ne!(live.version(), first);
    assert_eq!(live.version(), current.version());
    let state = live.state();
    assert_eq!(
        (state.version, state.loaded_at, state.last_attempt),
        (live.version(), at(5), Attempt::Ok { at: at(5) })
    );
    assert_eq!((state.succeeded, state.failed), (1, 0));
}

#[test]
fn what_descriptors_mean_is_replaced_with_the_policies() {
    let live = Live::new(policies(ONE));
    live.replace(policies(&format!("{ONE}\nrate_limit_service: {{ domains: {{ edge: [] }} }}")), Vec::new(), at(5));
    assert!(live.current().rate_limit_service().domains.contains_key("edge"));
    live.replace(policies(ONE), Vec::new(), at(6));
    assert!(live.current().rate_limit_service().domains.is_empty());
}

#[test]
fn a_set_that_is_the_same_is_in_use_since_before() {
    let live = Live::new(policies(ONE));
    let (held, started) = (live.current(), live.state());
    live.replace(policies(ONE), vec!["listen".to_owned()], at(5));
    assert!(Arc::ptr_eq(&held, &live.current()));
    let state = live.state();
    assert_eq!((state.loaded_at, state.last_success_at, state.succeeded), (started.loaded_at, at(5), 1));
    assert_eq!(state.needs_restart, ["listen"]);
}

#[test]
fn what_is_refused_changes_nothing_but_the_state() {
    let live = Live::new(policies(ONE));
    let (held, started) = (live.current(), live.state());
    live.refuse("f.yaml:1:1: no".to_owned(), at(5));
    assert!(Arc::ptr_eq(&held, &live.current()));
    let state = live.state();
    assert_eq!(state.last_attempt, Attempt::Failed { at: at(5), error: "f.yaml:1:1: no".to_owned() });
    assert_eq!((state.failed, state.last_success_at), (1, started.last_success_at));
    live.replace(policies(ONE), Vec::new(), at(6));
    assert_eq!(live.state().last_attempt, Attempt::Ok { at: at(6) });
}

#[test]
fn metrics_say_what_the_state_does() {
    let live = Live::new(policies(ONE));
    let mut registry = Registry::with_prefix("sluicegate");
    live.register(&mut registry);
    let text = || {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    };
    let check = |lines: &[String]| {
        let text = text();
        for line in lines {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    };
    let version = live.version();
    check(&[
        "sluicegate_config_reloads_total{result=\"ok\"} 0".to_owned(),
        "sluicegate_config_reloads_total{result=\"failed\"} 0".to_owned(),
        "sluicegate_config_last_reload_successful 1".to_owned(),
        format!("sluicegate_policies_info{{version=\"{version}\"}} 1"),
    ]);
    live.replace(policies(OTHER), Vec::new(), at(5));
    live.refuse("no".to_owned(), at(6));
    let version = live.version();
    check(&[
        "sluicegate_config_reloads_total{result=\"ok\"} 1".to_owned(),
        "sluicegate_config_reloads_total{result=\"failed\"} 1".to_owned(),
        "sluicegate_config_last_reload_successful 0".to_owned(),
        "sluicegate_config_last_reload_success_timestamp_seconds 5.0".to_owned(),
        format!("sluicegate_policies_info{{version=\"{version}\"}} 1"),
    ]);
}
