//! Limits that are taken from together or not at all.

use std::sync::Arc;

use sluicegate_lua::Policy;
use sluicegate_wire::Reason;

use crate::{
    case::{Case, on_both_stores},
    policies::{HOUR_MS, daily, greedy, interval, one, policy},
};

on_both_stores![
    one_denies_and_the_other_stays_uncharged,
    every_limit_is_charged_when_all_pass,
    the_longest_wait_is_that_of_the_limit_that_denies_longest,
    after_the_longest_wait_all_pass,
    never_on_one_limit_takes_nothing_from_the_others,
    joined_takes_stop_at_the_smallest_limit,
    policies_of_one_check_go_together,
    costs_of_one_check_differ,
    a_cost_of_nothing_beside_another_is_not_charged,
    sixteen_limits_are_one_step,
];

fn one_and_ten() -> Arc<Policy> {
    policy(&[("one", greedy(1, 1, HOUR_MS)), ("ten", greedy(10, 1, HOUR_MS))])
}

fn one_denies_and_the_other_stays_uncharged(case: &Case) {
    let policy = one_and_ten();
    let allowed = (0..20).filter(|_| case.take(&policy, 1).allowed()).count();
    assert_eq!((allowed, case.left(&policy)), (1, vec![0, 9]));
    // In the other order too: what was read first isn't written before the last has agreed.
    let turned = crate::policies::policy(&[("ten", greedy(10, 1, HOUR_MS)), ("one", greedy(1, 1, HOUR_MS))]);
    assert_eq!(case.takes(&turned, 20, 1).iter().filter(|heard| heard.allowed()).count(), 0);
    assert_eq!(case.left(&turned), [9, 0]);
}

fn every_limit_is_charged_when_all_pass(case: &Case) {
    let rules = [("a", greedy(9, 1, HOUR_MS)), ("b", interval(8, 1, HOUR_MS)), ("c", daily(7, case.store.now_ms()))];
    let policy = policy(&rules);
    assert_eq!(case.take(&policy, 3).left(), [6, 5, 4]);
    assert_eq!(case.take(&policy, 5).reasons(), [Reason::Ok, Reason::Ok, Reason::OverLimit]);
    assert_eq!(case.left(&policy), [6, 5, 4]);
}

fn the_longest_wait_is_that_of_the_limit_that_denies_longest(case: &Case) {
    let (slow, slowest, idle) =
        (("slow", greedy(4, 1, HOUR_MS)), ("slowest", greedy(4, 1, 2 * HOUR_MS)), ("idle", greedy(9, 1, 1)));
    let there = policy(&[slow.clone(), slowest.clone(), idle.clone()]);
    let back = policy(&[idle, slowest, slow]);
    let taken = case.take(&there, 3);
    let denied = case.take(&there, 2);
    assert_eq!(denied.reasons(), [Reason::OverLimit, Reason::OverLimit, Reason::Ok]);
    assert_eq!(denied.waits_ms()[0], Some(taken.now_ms + HOUR_MS - denied.now_ms));
    assert_eq!(denied.longest_wait(), (1, taken.now_ms + 2 * HOUR_MS - denied.now_ms));
    let denied = case.take(&back, 4);
    assert_eq!(denied.longest_wait(), (1, taken.now_ms + 6 * HOUR_MS - denied.now_ms));
    // One limit has enough: the wait is the other's alone.
    let denied = case.take(&policy(&[("slow", greedy(2, 1, HOUR_MS)), ("new", greedy(4, 1, 2 * HOUR_MS))]), 2);
    assert_eq!(denied.longest_wait(), (0, taken.now_ms + HOUR_MS - denied.now_ms));
}

fn after_the_longest_wait_all_pass(case: &Case) {
    let policy = policy(&[("a", greedy(3, 1, 10)), ("b", interval(2, 1, 12)), ("c", greedy(5, 7, 30))]);
    let denied = loop {
        let heard = case.take(&policy, 2);
        if !heard.allowed() {
            break heard;
        }
    };
    case.pass(denied.longest_wait().1);
    assert!(case.take(&policy, 2).allowed(), "after {denied:?}");
}

fn never_on_one_limit_takes_nothing_from_the_others(case: &Case) {
    let policy = one_and_ten();
    let denied = case.take(&policy, 5);
    assert_eq!(denied.reasons(), [Reason::Never, Reason::Ok]);
    assert_eq!(denied.waits_ms(), [None, Some(0)]);
    assert_eq!(case.store.entries(), []);
}

fn joined_takes_stop_at_the_smallest_limit(case: &Case) {
    let policy = policy(&[("a", greedy(9, 1, HOUR_MS)), ("b", greedy(5, 1, HOUR_MS))]);
    let told: Vec<_> =
        case.takes(&policy, 4, 2).iter().map(|heard| (heard.allowed(), heard.left(), heard.reasons()[1])).collect();
    assert_eq!(told[1], (true, vec![5, 1], Reason::Ok));
    assert_eq!(told[2], (false, vec![5, 1], Reason::OverLimit));
    assert_eq!(told[3], told[2]);
    assert_eq!(case.left(&policy), [5, 1]);
}

fn policies_of_one_check_go_together(case: &Case) {
    let (address, account) = (case.subject("address", "203.0.113.7"), case.subject("account", "u1"));
    let (wide, narrow) = (one(greedy(10, 1, HOUR_MS)), one(greedy(2, 1, HOUR_MS)));
    let check = [(&wide, &address, 1), (&narrow, &account, 1)];
    let allowed = (0..5).filter(|_| case.unit(1, &check)[0].allowed()).count();
    assert_eq!(allowed, 2);
    assert_eq!(case.unit(1, &[(&wide, &address, 0), (&narrow, &account, 0)])[0].left(), [8, 0]);
}

fn costs_of_one_check_differ(case: &Case) {
    let (a, b) = (case.subject("a", "s"), case.subject("b", "s"));
    let ten = one(greedy(10, 1, HOUR_MS));
    let heard = case.unit(5, &[(&ten, &a, 1), (&ten, &b, 4)]);
    let left: Vec<_> = heard.iter().map(|heard| heard.left()).collect();
    assert_eq!(left, [[9, 6], [8, 2], [8, 2], [8, 2], [8, 2]]);
}

fn a_cost_of_nothing_beside_another_is_not_charged(case: &Case) {
    let looked_at = case.subject("looked-at", "s");
    let ten = one(greedy(10, 1, HOUR_MS));
    assert_eq!(case.unit(1, &[(&ten, &looked_at, 0), (&ten, &case.keys, 4)])[0].left(), [10, 6]);
    let keys: Vec<_> = case.store.entries().into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [case.limit_key("burst")]);
}

fn sixteen_limits_are_one_step(case: &Case) {
    let names: Vec<_> = (0..16).map(|index| format!("l{index}")).collect();
    let rules: Vec<_> = names.iter().zip(5..).map(|(name, more)| (name.as_str(), greedy(more, 1, HOUR_MS))).collect();
    let policy = policy(&rules);
    let heard = case.takes(&policy, 7, 1);
    assert_eq!(heard.iter().filter(|heard| heard.allowed()).count(), 5);
    assert_eq!(case.left(&policy), (0..16).collect::<Vec<_>>());
}
