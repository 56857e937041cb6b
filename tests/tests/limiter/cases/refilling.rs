//! What comes back as time passes.

use sluicegate_wire::Reason;

use crate::{
    case::{Case, on_both_stores, run},
    policies::{HOUR_MS, greedy, interval, one},
    store::Store,
};

on_both_stores![
    a_token_is_there_exactly_when_its_time_has_come,
    waiting_as_told_succeeds,
    a_partly_refilled_token_shortens_the_wait,
    the_wait_is_for_what_is_missing,
    parts_of_a_ms_are_never_lost,
    a_slow_refill_outlives_a_pause,
    a_bucket_fills_to_its_capacity,
    an_interval_refills_in_whole_steps,
    an_interval_starts_with_the_first_take,
    a_key_that_outlives_its_refill_is_full_and_no_more,
];

/// Denied calls in between must neither push the next token away nor bring it near; polled fast it comes as well.
fn a_token_is_there_exactly_when_its_time_has_come(case: &Case) {
    const PER_MS: u64 = 20;
    let policy = one(greedy(1, 1, PER_MS));
    for pause_ms in [12, 1] {
        let mut last_ms = None;
        for _ in 0..5 * PER_MS / pause_ms {
            let heard = case.take(&policy, 1);
            let due = last_ms.is_none_or(|last_ms| heard.now_ms - last_ms >= PER_MS);
            assert_eq!(heard.allowed(), due, "{last_ms:?}, {heard:?}");
            if due {
                last_ms = Some(heard.now_ms);
            }
            case.pass(pause_ms);
        }
        case.reset(&policy);
    }
}

fn waiting_as_told_succeeds(case: &Case) {
    for (capacity, refill, per_ms, cost) in [(1, 1, 40, 1), (3, 7, 90, 3), (5, 1, 6, 4)] {
        for rule in [greedy(capacity, refill, per_ms), interval(capacity, refill, per_ms)] {
            let policy = one(rule);
            let denied = loop {
                let heard = case.take(&policy, cost);
                if !heard.allowed() {
                    break heard;
                }
            };
            let (_, wait_ms) = denied.longest_wait();
            assert!((1..=per_ms * capacity.div_ceil(refill)).contains(&wait_ms), "{denied:?}");
            case.pass(wait_ms);
            assert!(case.take(&policy, cost).allowed(), "{policy:?} after {denied:?}");
            case.reset(&policy);
        }
    }
}

fn a_partly_refilled_token_shortens_the_wait(case: &Case) {
    let policy = one(greedy(1, 1, HOUR_MS));
    let taken = case.take(&policy, 1);
    for _ in 0..3 {
        case.pass(7);
        let denied = case.take(&policy, 1);
        assert_eq!(denied.waits_ms(), [Some(taken.now_ms + HOUR_MS - denied.now_ms)]);
    }
}

fn the_wait_is_for_what_is_missing(case: &Case) {
    let policy = one(greedy(10, 1, HOUR_MS));
    let taken = case.take(&policy, 8);
    let denied = case.take(&policy, 7);
    assert_eq!(denied.waits_ms(), [Some(taken.now_ms + 5 * HOUR_MS - denied.now_ms)]);
    assert_eq!(denied.judgements[0].next_ms, taken.now_ms + HOUR_MS - denied.now_ms);
    assert_eq!(denied.judgements[0].full_ms, taken.now_ms + 8 * HOUR_MS - denied.now_ms);
}

/// 7 tokens in 30 ms: one in 4 ms and 2/7. Whenever the bucket is drained, what came in since the start is admitted to
/// the token.
fn parts_of_a_ms_are_never_lost(case: &Case) {
    const FILL_MS: u64 = 86;
    let policy = one(greedy(20, 7, 30));
    let (mut start_ms, mut last_ms, mut admitted) = (0, 0, 0);
    for _ in 0..12 {
        let heard = case.takes(&policy, 40, 1);
        let (now_ms, granted) = (heard[0].now_ms, heard.iter().filter(|heard| heard.allowed()).count() as u64);
        if now_ms - last_ms >= FILL_MS {
            // It was full: more could have come in.
            (start_ms, admitted) = (now_ms, 0);
        }
        (last_ms, admitted) = (now_ms, admitted + granted);
        assert_eq!(admitted, 20 + (now_ms - start_ms) * 7 / 30, "in {} ms", now_ms - start_ms);
        case.pass(5);
    }
}

/// Were the key gone earlier than the bucket is full, the next take would find it full.
fn a_slow_refill_outlives_a_pause(case: &Case) {
    for (capacity, per_ms) in [(1, 10_000), (3, 15_000)] {
        let policy = one(greedy(capacity, 1, per_ms));
        assert!(case.take(&policy, capacity).allowed());
        case.pass(20);
        assert_eq!(case.take(&policy, 1).left(), [0]);
        assert!(case.ttl_ms(&case.limit_key("burst")).unwrap() > capacity * per_ms - 5_000);
        case.reset(&policy);
    }
}

fn a_bucket_fills_to_its_capacity(case: &Case) {
    for rule in [greedy(3, 1, 2), interval(3, 2, 2)] {
        let policy = one(rule);
        case.take(&policy, 3);
        case.pass(10);
        assert_eq!(case.left(&policy), [3]);
        assert_eq!(case.take(&policy, 4).reasons(), [Reason::Never]);
        assert_eq!(case.store.entries(), [], "a full bucket needs no key");
    }
}

fn an_interval_refills_in_whole_steps(case: &Case) {
    const PER_MS: u64 = 15;
    let policy = one(interval(5, 2, PER_MS));
    let first = case.take(&policy, 5);
    for _ in 0..20 {
        case.pass(3);
        let heard = case.peek(&policy);
        let passed_ms = heard.now_ms - first.now_ms;
        let expected = (2 * (passed_ms / PER_MS)).min(5);
        assert_eq!(heard.left(), [expected], "after {passed_ms} ms");
        let next_ms = if expected == 5 { 0 } else { PER_MS - passed_ms % PER_MS };
        assert_eq!(heard.judgements[0].next_ms, next_ms, "after {passed_ms} ms");
    }
}

/// Takes between two steps don't move them.
fn an_interval_starts_with_the_first_take(case: &Case) {
    let policy = one(interval(5, 5, HOUR_MS));
    case.pass(3);
    let first = case.take(&policy, 2);
    case.pass(3);
    case.take(&policy, 3);
    case.pass(3);
    let denied = case.take(&policy, 1);
    assert_eq!(denied.waits_ms(), [Some(first.now_ms + HOUR_MS - denied.now_ms)]);
}

fn a_key_that_outlives_its_refill_is_full_and_no_more(case: &Case) {
    for rule in [greedy(5, 1, 3), interval(5, 2, 3)] {
        let policy = one(rule);
        case.take(&policy, 5);
        case.outlive(&case.limit_key("burst"));
        case.pass(34);
        assert_eq!(case.left(&policy), [5]);
        // The time starts again with the take that finds it full.
        let heard = case.take(&policy, 5);
        assert_eq!((heard.left(), heard.judgements[0].next_ms), (vec![0], 3));
        case.reset(&policy);
    }
}

/// Found full, it keeps no part of a ms for later. 7 ms hold three tokens: of four taken at 0 and one at 3 ms the last is
/// back at 11 2/3 ms, and the next after that one is due at 14 1/3.
#[test]
fn a_full_bucket_keeps_no_part_of_a_ms() {
    run(Store::embedded(), |case| {
        let policy = one(greedy(4, 3, 7));
        case.take(&policy, 4);
        case.pass(3);
        assert_eq!(case.take(&policy, 1).left(), [0]);
        case.outlive(&case.limit_key("burst"));
        case.pass(9);
        assert_eq!(case.take(&policy, 4).left(), [0]);
        case.pass(2);
        assert_eq!(case.left(&policy), [0]);
        case.pass(1);
        assert_eq!(case.left(&policy), [1]);
    });
}
