//! What one bucket admits at one moment.

use std::sync::Arc;

use sluicegate_lua::Policy;
use sluicegate_wire::{Cost, Reason};

use crate::{
    case::{Case, on_both_stores},
    policies::{DAY_MS, HOUR_MS, greedy, interval, one},
};

on_both_stores![
    starts_full_and_admits_its_capacity,
    a_small_bucket_admits_one_of_four_at_once,
    the_1001st_of_1000_a_minute_is_denied,
    a_cost_above_what_is_left_takes_nothing,
    a_cost_above_capacity_never_passes,
    a_look_writes_nothing,
    a_denied_first_take_leaves_no_key,
    joined_takes_count_down_one_by_one,
    joined_takes_equal_single_ones,
    every_take_renews_the_ttl,
    a_refill_of_less_than_a_ms_keeps_its_key_a_ms,
    the_largest_bucket_is_exact,
    the_longest_refill_is_kept_a_year,
];

fn slow(capacity: u64) -> Arc<Policy> {
    one(greedy(capacity, 1, HOUR_MS))
}

fn starts_full_and_admits_its_capacity(case: &Case) {
    let policy = slow(5);
    let heard: Vec<_> = (0..7).map(|_| case.take(&policy, 1)).collect();
    assert_eq!(heard.iter().filter(|heard| heard.allowed()).count(), 5);
    let left: Vec<_> = heard.iter().flat_map(|heard| heard.left()).collect();
    assert_eq!(left, [4, 3, 2, 1, 0, 0, 0]);
    assert_eq!(heard[6].reasons(), [Reason::OverLimit]);
}

/// The time to full is under a second: a TTL in whole seconds would be 0, and nothing stored.
fn a_small_bucket_admits_one_of_four_at_once(case: &Case) {
    let policy = one(greedy(1, 3, 1_000));
    let heard = case.takes(&policy, 4, 1);
    let allowed: Vec<_> = heard.iter().map(|heard| heard.allowed()).collect();
    assert_eq!(allowed, [true, false, false, false]);
    let next = case.take(&policy, 1);
    assert_eq!(next.allowed(), next.now_ms - heard[0].now_ms >= 334, "{next:?}");
}

fn the_1001st_of_1000_a_minute_is_denied(case: &Case) {
    let heard = case.takes(&one(greedy(1_000, 1_000, 60_000)), 1_001, 1);
    assert!(heard[..1_000].iter().all(|heard| heard.allowed()));
    assert_eq!(heard[1_000].reasons(), [Reason::OverLimit]);
    assert_eq!(heard[1_000].waits_ms(), [Some(60)]);
}

fn a_cost_above_what_is_left_takes_nothing(case: &Case) {
    let policy = one(greedy(10, 1, 10_000));
    assert!(case.take(&policy, 8).allowed());
    let denied = case.take(&policy, 5);
    assert_eq!((denied.reasons(), denied.left()), (vec![Reason::OverLimit], vec![2]));
    assert_eq!(case.take(&policy, 2).left(), [0]);
}

fn a_cost_above_capacity_never_passes(case: &Case) {
    for rule in [greedy(5, 1, HOUR_MS), interval(5, 5, HOUR_MS)] {
        let policy = one(rule);
        let denied = case.take(&policy, 6);
        assert_eq!((denied.reasons(), denied.waits_ms()), (vec![Reason::Never], vec![None]));
        assert_eq!(case.take(&policy, Cost::MAX.tokens()).reasons(), [Reason::Never]);
        assert_eq!(case.store.entries(), []);
        assert!(case.take(&policy, 5).allowed());
        assert_eq!(case.take(&policy, 6).reasons(), [Reason::Never]);
        case.reset(&policy);
    }
}

fn a_look_writes_nothing(case: &Case) {
    let policy = slow(3);
    assert_eq!(case.peek(&policy).left(), [3]);
    assert_eq!(case.store.entries(), []);
    case.take(&policy, 3);
    let drained = case.store.entries();
    let heard = case.peek(&policy);
    assert!(heard.allowed(), "nothing is always there");
    assert_eq!(heard.left(), [0]);
    assert_eq!(case.store.entries()[0].value, drained[0].value);
    assert!(case.store.entries()[0].ttl_ms <= drained[0].ttl_ms);
}

fn a_denied_first_take_leaves_no_key(case: &Case) {
    assert!(!case.take(&slow(2), 3).allowed());
    assert_eq!(case.store.entries(), []);
}

fn joined_takes_count_down_one_by_one(case: &Case) {
    let heard = case.takes(&slow(5), 4, 2);
    let told: Vec<_> = heard.iter().map(|heard| (heard.allowed(), heard.left()[0])).collect();
    assert_eq!(told, [(true, 3), (true, 1), (false, 1), (false, 1)]);
}

fn joined_takes_equal_single_ones(case: &Case) {
    let policy = slow(10);
    let joined = case.takes(&policy, 7, 3);
    case.reset(&policy);
    let single: Vec<_> = (0..7).map(|_| case.take(&policy, 3)).collect();
    for (joined, single) in joined.iter().zip(&single) {
        assert_eq!((joined.left(), joined.reasons()), (single.left(), single.reasons()));
    }
    assert_eq!(case.left(&policy), [1]);
}

fn every_take_renews_the_ttl(case: &Case) {
    let policy = slow(3);
    for taken in 1..=3 {
        assert!(case.take(&policy, 1).allowed());
        for _ in 0..2 {
            let ttl_ms = case.ttl_ms(&case.limit_key("burst")).unwrap();
            assert!((taken * HOUR_MS - 60_000..=taken * HOUR_MS).contains(&ttl_ms), "{ttl_ms} ms after {taken}");
            assert!(!case.take(&policy, 3).allowed());
        }
    }
}

fn a_refill_of_less_than_a_ms_keeps_its_key_a_ms(case: &Case) {
    // 5,000 a ms: whole ms, at least 1, or Redis refuses the command.
    for (capacity, refill, per_ms) in [(10, 5_000, 1), (1, 7, 3), (5, 7, 3_000), (1, 1_000_003, 7)] {
        let policy = one(greedy(capacity, refill, per_ms));
        assert!(case.take(&policy, 1).allowed());
        case.take(&policy, capacity);
        case.reset(&policy);
    }
}

fn the_largest_bucket_is_exact(case: &Case) {
    let policy = one(greedy(1 << 53, 1 << 20, 1));
    assert_eq!(case.take(&policy, (1 << 53) - 3).left(), [3]);
    case.reset(&policy);
    let policy = one(interval(1 << 53, 1 << 50, 1_024));
    assert_eq!(case.take(&policy, 1).left(), [Cost::MAX.tokens()]);
    assert_eq!(case.take(&policy, Cost::MAX.tokens()).left(), [0]);
    assert_eq!(case.take(&policy, Cost::MAX.tokens()).reasons(), [Reason::OverLimit]);
}

fn the_longest_refill_is_kept_a_year(case: &Case) {
    let policy = one(greedy(366, 1, DAY_MS));
    assert!(case.take(&policy, 366).allowed());
    assert_eq!(case.take(&policy, 1).left(), [0]);
    assert!(case.ttl_ms(&case.limit_key("burst")).unwrap() > 365 * DAY_MS);
}
