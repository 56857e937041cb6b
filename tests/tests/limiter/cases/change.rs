//! A policy that changes while its keys live: the next take obeys, tokens are kept, limits are found by name.

use sluicegate_lua::{Every, Quota};

use crate::{
    case::{Case, on_both_stores, run},
    policies::{DAY_MS, HOUR_MS, daily, greedy, interval, one, policy},
    store::Store,
};

on_both_stores![
    a_new_capacity_reaches_a_live_key,
    a_lower_capacity_clamps_when_something_is_taken,
    a_raised_rate_keeps_what_is_there,
    there_and_back_gives_no_free_refill,
    limits_are_found_by_name,
    a_lowered_rate_names_the_new_wait,
    the_refill_mode_can_change,
    a_limit_that_counts_otherwise_starts_full,
    a_changed_quota_keeps_its_count,
    a_faster_refill_stops_at_capacity,
];

fn hourly(capacity: u64) -> std::sync::Arc<sluicegate_lua::Policy> {
    one(greedy(capacity, 1, HOUR_MS))
}

fn a_new_capacity_reaches_a_live_key(case: &Case) {
    case.take(&hourly(100), 10);
    assert_eq!(case.take(&hourly(200), 1).left(), [89]);
    assert_eq!(case.take(&hourly(50), 1).left(), [49]);
    assert_eq!(case.take(&hourly(50), 50).left(), [49]);
    assert_eq!(case.take(&hourly(200), 51).left(), [49]);
}

/// A look doesn't clamp: it writes nothing.
fn a_lower_capacity_clamps_when_something_is_taken(case: &Case) {
    case.take(&hourly(100), 10);
    assert_eq!(case.left(&hourly(50)), [50]);
    assert_eq!(case.left(&hourly(100)), [90]);
    case.take(&hourly(50), 1);
    assert_eq!(case.left(&hourly(100)), [49]);
}

fn a_raised_rate_keeps_what_is_there(case: &Case) {
    case.take(&one(greedy(16, 10, 20_000)), 4);
    let heard = case.take(&one(greedy(16, 1_000, 20_000_000)), 12);
    assert!(heard.allowed(), "{heard:?}");
    case.reset(&hourly(1));
    case.take(&hourly(16), 4);
    let heard = case.takes(&one(greedy(16, 1_000, 20_000)), 1, 1).remove(0);
    assert!(heard.allowed() && heard.left()[0] >= 11, "{heard:?}");
}

fn there_and_back_gives_no_free_refill(case: &Case) {
    let (a, b) = (hourly(10), one(greedy(20, 1, 2 * HOUR_MS)));
    case.take(&a, 10);
    assert_eq!(case.left(&b), [0]);
    assert!(!case.take(&b, 1).allowed());
    assert_eq!(case.left(&a), [0]);
    case.give(&b, 1, &[]);
    assert_eq!(case.take(&b, 1).left(), [0]);
    assert!(!case.take(&a, 1).allowed());
}

fn limits_are_found_by_name(case: &Case) {
    let (a, b, c) = (("a", greedy(5, 1, HOUR_MS)), ("b", greedy(6, 1, HOUR_MS)), ("c", greedy(7, 1, HOUR_MS)));
    let (before, since) = (policy(&[a.clone(), b.clone()]), policy(&[c, b, a]));
    case.take(&before, 2);
    assert_eq!(case.left(&since), [7, 4, 3]);
    case.take(&since, 1);
    assert_eq!(case.left(&before), [2, 3]);
}

fn a_lowered_rate_names_the_new_wait(case: &Case) {
    let taken = case.take(&hourly(2), 2);
    let denied = case.take(&one(greedy(2, 1, 5 * HOUR_MS)), 1);
    assert_eq!(denied.waits_ms(), [Some(taken.now_ms + 5 * HOUR_MS - denied.now_ms)]);
}

fn the_refill_mode_can_change(case: &Case) {
    let (all_the_time, in_steps) = (hourly(9), one(interval(9, 9, HOUR_MS)));
    let taken = case.take(&all_the_time, 4);
    assert_eq!(case.left(&in_steps), [5]);
    let heard = case.take(&in_steps, 1);
    assert_eq!(heard.judgements[0].next_ms, taken.now_ms + HOUR_MS - heard.now_ms);
    assert_eq!(case.left(&all_the_time), [4]);
}

/// Tokens are no count of what was used, and the other way round: it is another limit.
fn a_limit_that_counts_otherwise_starts_full(case: &Case) {
    let (bucket, quota) = (hourly(9), one(daily(7, case.store.now_ms())));
    case.take(&bucket, 4);
    assert_eq!(case.left(&quota), [7]);
    assert_eq!(case.left(&bucket), [5], "a look changes nothing");
    case.take(&quota, 2);
    assert_eq!((case.left(&quota), case.left(&bucket)), (vec![5], vec![9]));
}

fn a_changed_quota_keeps_its_count(case: &Case) {
    let quota = |quota| one(daily(quota, case.store.now_ms()));
    case.take(&quota(100), 60);
    assert_eq!(case.left(&quota(200)), [140]);
    assert_eq!(case.left(&quota(50)), [0]);
    assert!(!case.take(&quota(50), 1).allowed());
    assert_eq!(case.left(&quota(100)), [40]);
}

/// The key was to live until the slower one would be full.
fn a_faster_refill_stops_at_capacity(case: &Case) {
    for (slow, fast) in [(greedy(5, 1, HOUR_MS), greedy(5, 5, 2)), (interval(5, 1, HOUR_MS), interval(5, 3, 2))] {
        let (slow, fast) = (one(slow), one(fast));
        case.take(&slow, 5);
        case.pass(10);
        assert_eq!(case.left(&fast), [5]);
        assert_eq!(case.left(&slow), [0], "a look changes nothing");
        assert_eq!(case.take(&fast, 2).left(), [3]);
        case.reset(&slow);
    }
}

/// What has come in of a ms at 1,009 units a ms is not so much at one unit a ms.
#[test]
fn a_part_of_a_ms_stays_one() {
    run(Store::embedded(), |case| {
        let before = one(greedy(500, 1_009, 1_000));
        case.take(&before, 500);
        case.pass(111);
        // 111.999 tokens came in.
        assert_eq!(case.take(&before, 100).left(), [11]);
        let since = one(greedy(500, 1, 10));
        assert_eq!(case.left(&since), [11]);
        case.pass(9);
        assert_eq!(case.left(&since), [11]);
        case.pass(1);
        assert_eq!(case.left(&since), [12]);
    });
}

/// A day's count is none of this minute's; a minute's is one of its day's.
#[test]
fn a_quota_of_other_windows() {
    run(Store::embedded(), |case| {
        let every = |every| one(Quota::new(5, every, "UTC").unwrap().into());
        let (day, minute) = (every(Every::Day), every(Every::Minute));
        case.take(&day, 4);
        assert_eq!(case.left(&minute), [5]);
        assert_eq!(case.left(&day), [1], "a look changes nothing");
        case.reset(&day);
        case.take(&minute, 2);
        assert_eq!(case.left(&day), [3]);
        assert_eq!(case.take(&day, 1).left(), [2]);
        case.pass(DAY_MS);
        assert_eq!(case.left(&day), [5]);
    });
}
