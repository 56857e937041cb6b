//! Refunds, grants and resets.

use std::sync::Arc;

use sluicegate_lua::{Ban, Gift};

use crate::{
    case::{Case, charge, on_both_stores},
    policies::{HOUR_MS, daily, greedy, interval, limits, one, policy},
};

on_both_stores![
    a_refund_stops_at_capacity,
    a_refund_never_creates_a_key,
    a_full_bucket_needs_no_key,
    a_refund_keeps_the_time_of_the_next_token,
    each_limit_gets_what_it_misses,
    a_refund_renews_the_ttl,
    a_refund_of_nothing_changes_nothing,
    gifts_of_one_call_are_one_step,
    a_reset_makes_every_limit_full,
    a_reset_of_nothing_creates_nothing,
];

fn a_refund_stops_at_capacity(case: &Case) {
    for rule in [greedy(5, 1, HOUR_MS), interval(5, 5, HOUR_MS)] {
        let policy = one(rule);
        case.take(&policy, 3);
        assert_eq!(case.give(&policy, 2, &[]), [2]);
        assert_eq!(case.left(&policy), [4]);
        assert_eq!(case.give(&policy, 2, &[]), [1]);
        assert_eq!(case.give(&policy, 2, &[]), [0]);
        assert_eq!(case.left(&policy), [5]);
        assert!(!case.take(&policy, 6).allowed());
    }
}

fn a_refund_never_creates_a_key(case: &Case) {
    let policy = policy(&[("a", greedy(5, 1, HOUR_MS)), ("b", interval(5, 1, HOUR_MS))]);
    assert_eq!(case.give(&policy, 3, &[]), [0, 0]);
    assert_eq!(case.store.entries(), []);
}

fn a_full_bucket_needs_no_key(case: &Case) {
    let policy = one(greedy(5, 1, HOUR_MS));
    case.take(&policy, 3);
    assert_eq!(case.give(&policy, 3, &[]), [3]);
    assert_eq!(case.store.entries(), []);
}

fn a_refund_keeps_the_time_of_the_next_token(case: &Case) {
    for rule in [greedy(5, 1, HOUR_MS), interval(5, 1, HOUR_MS)] {
        let policy = one(rule);
        let taken = case.take(&policy, 4);
        case.pass(7);
        assert_eq!(case.give(&policy, 2, &[]), [2]);
        let heard = case.peek(&policy);
        assert_eq!(heard.judgements[0].next_ms, taken.now_ms + HOUR_MS - heard.now_ms);
        case.reset(&policy);
    }
}

fn each_limit_gets_what_it_misses(case: &Case) {
    let rules = [("a", greedy(9, 1, HOUR_MS)), ("b", greedy(5, 1, HOUR_MS)), ("c", interval(4, 1, HOUR_MS))];
    let (all, first) = (policy(&rules), policy(&rules[..1]));
    case.take(&first, 4);
    case.take(&all, 1);
    assert_eq!(case.give(&all, 3, &[]), [3, 1, 1]);
    assert_eq!(case.left(&all), [7, 5, 4]);
}

fn a_refund_renews_the_ttl(case: &Case) {
    let policy = one(greedy(5, 1, HOUR_MS));
    case.take(&policy, 5);
    case.give(&policy, 4, &[]);
    let ttl_ms = case.ttl_ms(&case.limit_key("burst")).unwrap();
    assert!((HOUR_MS - 60_000..=HOUR_MS).contains(&ttl_ms), "{ttl_ms}");
}

fn a_refund_of_nothing_changes_nothing(case: &Case) {
    let policy = one(greedy(5, 1, HOUR_MS));
    case.take(&policy, 5);
    let before = case.store.entries();
    assert_eq!(case.give(&policy, 0, &[]), [0]);
    assert_eq!(case.store.entries()[0].value, before[0].value);
}

fn gifts_of_one_call_are_one_step(case: &Case) {
    let other = case.subject("p", "other");
    let (five, nine) = (one(greedy(5, 1, HOUR_MS)), one(interval(9, 9, HOUR_MS)));
    case.take(&five, 5);
    case.unit(1, &[(&nine, &other, 4)]);
    let gift = |policy, keys, tokens| Gift { charge: charge(policy, keys, tokens), stamps: Vec::new() };
    let gifts = vec![gift(&five, &case.keys, 1), gift(&nine, &other, 9), gift(&five, &case.keys, 2)];
    assert_eq!(case.gifts(gifts), [[1], [4], [2]]);
    assert_eq!(case.left(&five), [3]);
    assert_eq!(case.gifts(vec![gift(&five, &case.keys, 1), gift(&five, &case.keys, 9)]), [[1], [1]]);
    assert_eq!(case.store.entries(), []);
    let quota = one(daily(5, case.store.now_ms()));
    case.take(&quota, 4);
    assert_eq!(case.gifts(vec![gift(&quota, &case.keys, 3), gift(&quota, &case.keys, 9)]), [[3], [1]]);
}

fn a_reset_makes_every_limit_full(case: &Case) {
    let other = case.subject("p", "other");
    let limits = limits(&[("a", greedy(9, 1, HOUR_MS)), ("b", interval(5, 1, HOUR_MS))]);
    let policy = Arc::new(limits.with_ban(Ban::new(1, HOUR_MS, HOUR_MS).unwrap()));
    case.take(&policy, 5);
    case.take(&policy, 5);
    case.unit(1, &[(&policy, &other, 2)]);
    assert!(!case.peek(&policy).allowed());
    assert_eq!(case.reset(&policy), 3);
    assert_eq!(case.left(&policy), [9, 5]);
    assert_eq!(case.unit(1, &[(&policy, &other, 0)])[0].left(), [7, 3], "another subject's stay");
}

fn a_reset_of_nothing_creates_nothing(case: &Case) {
    assert_eq!(case.reset(&one(greedy(5, 1, HOUR_MS))), 0);
    assert_eq!(case.store.entries(), []);
}
