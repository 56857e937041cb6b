//! How many Redis commands a decision costs: by the embedded store's own count, and by Redis' statistics.

use std::sync::Arc;

use sluicegate_lua::{Ban, Policy};

use crate::{
    case::{Case, on_both_stores},
    policies::{HOUR_MS, daily, greedy, interval, limits, one, policy},
};

on_both_stores![one_limit, several_limits, a_ban_and_an_override, joined_takes];

/// Takes until the first denial: the commands of an allowed take on a new key, on a live one, and of the denied one.
fn check(case: &Case, policy: &Arc<Policy>, expected: [u64; 3]) {
    let take = |takes, cost| {
        let charges = [(policy, &case.keys, cost)];
        let call = sluicegate_lua::Take { takes, units: vec![crate::case::unit(&charges, true)] };
        let call = call.call(case.store.now_ms());
        case.store.commands(|| assert!(case.store.run(&call).is_ok()))
    };
    assert_eq!([take(1, 1), take(1, 1), take(1, 2)], expected, "{policy:?}");
    case.reset(policy);
}

fn one_limit(case: &Case) {
    // TIME and GET, and SET when something is taken.
    check(case, &one(greedy(3, 1, HOUR_MS)), [3, 3, 2]);
    check(case, &one(interval(3, 3, HOUR_MS)), [3, 3, 2]);
    check(case, &one(daily(3, case.store.now_ms())), [3, 3, 2]);
}

fn several_limits(case: &Case) {
    check(case, &policy(&[("a", greedy(3, 1, HOUR_MS)), ("b", greedy(9, 1, HOUR_MS))]), [5, 5, 3]);
}

fn a_ban_and_an_override(case: &Case) {
    let limits = limits(&[("a", greedy(3, 1, HOUR_MS))]);
    // The denial is counted: one SET.
    check(case, &Arc::new(limits.clone().with_ban(Ban::new(9, HOUR_MS, HOUR_MS).unwrap())), [4, 4, 4]);
    check(case, &Arc::new(limits.with_overrides()), [4, 4, 3]);
}

fn joined_takes(case: &Case) {
    let policy = one(greedy(100, 1, HOUR_MS));
    let take = sluicegate_lua::Take { takes: 150, units: vec![crate::case::unit(&[(&policy, &case.keys, 1)], true)] };
    let commands = case.store.commands(|| assert!(case.store.run(&take.call(0)).is_ok()));
    assert_eq!(commands, 3);
}
