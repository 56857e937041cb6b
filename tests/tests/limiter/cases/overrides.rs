//! Numbers of a subject's own.

use std::sync::Arc;

use sluicegate_lua::{Limit, MAX_FILL_MS, Override, OverrideError, Policy, Rule};

use crate::{
    case::{Case, on_both_stores},
    policies::{DAY_MS, HOUR_MS, daily, greedy, interval, limits, policy},
};

on_both_stores![
    the_next_take_obeys,
    a_lower_capacity_clamps,
    limits_without_a_line_keep_the_policys,
    names_that_begin_or_end_alike_are_told_apart,
    it_survives_a_reset_and_goes_when_removed,
    it_is_nothing_to_a_policy_that_does_not_allow_it,
    it_ends_with_its_time,
    without_an_end_use_keeps_it,
    another_kind_of_limit_ignores_it,
    a_quota_can_be_raised_and_lowered,
    gifts_obey_it,
    the_longest_override_is_read_back,
];

fn overridable(rules: &[(&str, Rule)]) -> Arc<Policy> {
    Arc::new(limits(rules).with_overrides())
}

fn set(case: &Case, policy: &Policy, rules: &[(&str, Rule)], lasts_ms: Option<u64>) {
    let rules: Vec<_> = rules.iter().map(|(name, rule)| (name.parse().unwrap(), rule.clone())).collect();
    let call = Override::new(policy, &rules, lasts_ms).unwrap().call(&case.keys);
    assert_eq!(case.store.run(&call).unwrap(), [1]);
}

fn remove(case: &Case) {
    assert_eq!(case.store.run(&Override::removal(&case.keys)).unwrap(), [1]);
}

fn the_next_take_obeys(case: &Case) {
    let policy = overridable(&[("a", greedy(5, 1, HOUR_MS)), ("b", interval(6, 1, HOUR_MS))]);
    case.take(&policy, 1);
    set(case, &policy, &[("a", greedy(3, 1, 2 * HOUR_MS)), ("b", interval(9, 1, HOUR_MS))], None);
    let heard = case.take(&policy, 1);
    assert!(heard.checks[0].overridden);
    assert_eq!(heard.checks[0].levels.iter().map(sluicegate_lua::Level::capacity).collect::<Vec<_>>(), [3, 9]);
    // 4 of 5 are clamped to 3; 5 of 6 are 5 of 9.
    assert_eq!(heard.left(), [2, 4]);
    let denied = case.take(&policy, 3);
    assert_eq!(denied.waits_ms()[0], Some(heard.now_ms + 2 * HOUR_MS - denied.now_ms));
}

fn a_lower_capacity_clamps(case: &Case) {
    let policy = overridable(&[("a", greedy(100, 1, HOUR_MS))]);
    set(case, &policy, &[("a", greedy(2, 1, HOUR_MS))], None);
    let heard = case.takes(&policy, 3, 1);
    assert_eq!(heard.iter().filter(|heard| heard.allowed()).count(), 2);
    remove(case);
    assert_eq!(case.left(&policy), [0], "no free refill");
}

fn limits_without_a_line_keep_the_policys(case: &Case) {
    let policy = overridable(&[("a", greedy(5, 1, HOUR_MS)), ("b", greedy(6, 1, HOUR_MS))]);
    set(case, &policy, &[("b", greedy(9, 1, HOUR_MS))], None);
    assert_eq!(case.left(&policy), [5, 9]);
}

fn names_that_begin_or_end_alike_are_told_apart(case: &Case) {
    let names = ["a", "a.b", "b", "b-", ".b", "a_"];
    let rules: Vec<_> = names.iter().map(|name| (*name, greedy(5, 1, HOUR_MS))).collect();
    let policy = overridable(&rules);
    for (index, name) in names.iter().enumerate() {
        set(case, &policy, &[(name, greedy(7, 1, HOUR_MS))], None);
        let mut expected = [5; 6];
        expected[index] = 7;
        assert_eq!(case.left(&policy), expected, "{name}");
    }
}

fn it_survives_a_reset_and_goes_when_removed(case: &Case) {
    let policy = overridable(&[("a", greedy(5, 1, HOUR_MS))]);
    set(case, &policy, &[("a", greedy(9, 1, HOUR_MS))], Some(HOUR_MS));
    case.take(&policy, 4);
    case.reset(&policy);
    assert_eq!(case.left(&policy), [9]);
    remove(case);
    let heard = case.peek(&policy);
    assert_eq!((heard.left(), heard.checks[0].overridden), (vec![5], false));
    assert_eq!(case.store.entries(), []);
}

fn it_is_nothing_to_a_policy_that_does_not_allow_it(case: &Case) {
    let rules = [("a", greedy(5, 1, HOUR_MS))];
    let (with, without) = (overridable(&rules), policy(&rules));
    set(case, &with, &[("a", greedy(9, 1, HOUR_MS))], None);
    assert_eq!((case.left(&with), case.left(&without)), (vec![9], vec![5]));
    let refused = Override::new(&without, &[("a".parse().unwrap(), greedy(9, 1, HOUR_MS))], None);
    assert_eq!(refused.unwrap_err(), OverrideError::NotAllowed("p".parse().unwrap()));
}

fn it_ends_with_its_time(case: &Case) {
    let policy = overridable(&[("a", greedy(5, 1, HOUR_MS))]);
    set(case, &policy, &[("a", greedy(9, 1, HOUR_MS))], Some(25));
    // Use doesn't prolong it.
    for _ in 0..4 {
        case.peek(&policy);
        case.pass(7);
    }
    assert_eq!(case.left(&policy), [5]);
    assert_eq!(case.store.entries(), []);
}

fn without_an_end_use_keeps_it(case: &Case) {
    let policy = overridable(&[("a", greedy(5, 1, HOUR_MS))]);
    set(case, &policy, &[("a", greedy(9, 1, HOUR_MS))], None);
    // As it would be after most of a year without use.
    let text = case.store.entries().remove(0).value;
    case.write(&case.keys.overrides(), &text, 60_000);
    assert_eq!(case.take(&policy, 1).left(), [8]);
    assert!(case.ttl_ms(&case.keys.overrides()).unwrap() > MAX_FILL_MS - DAY_MS);
}

fn another_kind_of_limit_ignores_it(case: &Case) {
    let before = overridable(&[("a", greedy(5, 1, HOUR_MS)), ("b", daily(4, case.store.now_ms()))]);
    set(case, &before, &[("a", greedy(9, 1, HOUR_MS)), ("b", daily(8, case.store.now_ms()))], None);
    assert_eq!(case.left(&before), [9, 8]);
    let since = overridable(&[("a", interval(6, 1, HOUR_MS)), ("b", greedy(7, 1, HOUR_MS))]);
    assert_eq!(case.left(&since), [6, 7]);
}

fn a_quota_can_be_raised_and_lowered(case: &Case) {
    let policy = overridable(&[("a", daily(5, case.store.now_ms()))]);
    case.take(&policy, 4);
    set(case, &policy, &[("a", daily(9, case.store.now_ms()))], None);
    assert_eq!(case.left(&policy), [5]);
    set(case, &policy, &[("a", daily(2, case.store.now_ms()))], None);
    assert_eq!(case.left(&policy), [0]);
    // Two over the new number and one refunded are still one over.
    assert_eq!(case.give(&policy, 1, &[]), [1]);
    assert_eq!(case.left(&policy), [0]);
    assert_eq!(case.give(&policy, 2, &[]), [2]);
    assert_eq!(case.left(&policy), [1]);
    remove(case);
    assert_eq!(case.left(&policy), [4]);
}

fn gifts_obey_it(case: &Case) {
    let policy = overridable(&[("a", greedy(5, 1, HOUR_MS))]);
    case.take(&policy, 5);
    set(case, &policy, &[("a", greedy(2, 1, HOUR_MS))], None);
    assert_eq!(case.give(&policy, 4, &[]), [2]);
    assert_eq!(case.left(&policy), [2]);
}

fn the_longest_override_is_read_back(case: &Case) {
    let names: Vec<String> = (10..26).map(|index| format!("{index}{}", "x".repeat(62))).collect();
    let own: Vec<(&str, Rule)> = names.iter().map(|name| (name.as_str(), greedy(1 << 53, 1 << 20, 1))).collect();
    let limits = own.iter().map(|(name, _)| Limit { name: name.parse().unwrap(), rule: greedy(1, 1, 1) }).collect();
    let policy = Arc::new(Policy::new("p".parse().unwrap(), limits).unwrap().with_overrides());
    set(case, &policy, &own, Some(MAX_FILL_MS));
    assert_eq!(case.take(&policy, (1 << 53) - 1).left(), [1; 16]);
}
