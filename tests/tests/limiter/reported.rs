//! What was reported of other limiters, with the input of each report and the right value, under a clock that tests
//! move. `cases.rs` covers the kinds on both stores; `token_bucket.rs` those that need a caller's clock or the published
//! script's reply.

use std::sync::Arc;

use sluicegate_lua::{Bucket, Policy, Refill};
use sluicegate_wire::Reason;

use crate::{
    case::{Case, run},
    policies::{greedy, interval, one, policy},
    store::Store,
};

fn check(case: impl FnOnce(&Case)) {
    run(Store::embedded(), case);
}

fn allowed(case: &Case, policy: &Arc<Policy>, calls: u64, pause_ms: u64) -> Vec<bool> {
    (0..calls)
        .map(|_| {
            let allowed = case.take(policy, 1).allowed();
            case.pass(pause_ms);
            allowed
        })
        .collect()
}

/// spring-cloud-gateway PR 2453: the TTL was floored to 0 and nothing stored.
#[test]
fn capacity_1_at_3_a_second_admits_1_of_4() {
    check(|case| assert_eq!(allowed(case, &one(greedy(1, 3, 1_000)), 4, 0), [true, false, false, false]));
}

/// redis-cell 50: a TTL of less than a second rounded to 0.
#[test]
fn the_1001st_of_1000_a_minute_is_denied() {
    check(|case| {
        let allowed = allowed(case, &one(greedy(1_000, 1_000, 60_000)), 1_001, 0);
        assert_eq!(allowed.iter().position(|allowed| !allowed), Some(1_000));
    });
}

/// apisix PR 12605: the TTL was shorter than the refill.
#[test]
fn a_tenth_a_second_denies_after_two_seconds() {
    check(|case| assert_eq!(allowed(case, &one(greedy(1, 1, 10_000)), 2, 2_000), [true, false]));
}

/// aspnetcore-redis-rate-limiting 46: the TTL was in the wrong unit.
#[test]
fn one_in_15_seconds_is_not_there_after_7() {
    check(|case| {
        let policy = one(greedy(3, 1, 15_000));
        case.take(&policy, 3);
        case.pass(7_000);
        assert_eq!(case.left(&policy), [0]);
        case.pass(8_000);
        assert_eq!(case.left(&policy), [1]);
    });
}

/// gubernator 118: expiry ran from the first hit, and the bucket was full again in mid-traffic.
#[test]
fn three_a_second_admit_18_in_5_seconds() {
    check(|case| {
        let allowed = allowed(case, &one(greedy(3, 3, 1_000)), 51, 100);
        // 3 at the start, then 15 in the 5 s up to the last call.
        assert_eq!(allowed.iter().filter(|allowed| **allowed).count(), 18);
    });
}

/// upstash PR 156: denied only at exactly 0, and stored a negative balance.
#[test]
fn a_cost_of_5_with_2_left_is_denied_with_2_left() {
    check(|case| {
        let policy = one(greedy(10, 1, 10_000));
        case.take(&policy, 8);
        let denied = case.take(&policy, 5);
        assert_eq!((denied.reasons(), denied.left()), (vec![Reason::OverLimit], vec![2]));
        assert_eq!(case.left(&policy), [2]);
    });
}

/// relay 4787, symfony PR 65796, envoyproxy/ratelimit 427: one limit denied, and the others stayed charged.
#[test]
fn one_and_ten_a_minute_admit_1_of_20_and_keep_9() {
    check(|case| {
        let policy = policy(&[("one", greedy(1, 1, 60_000)), ("ten", greedy(10, 10, 60_000))]);
        let allowed = allowed(case, &policy, 20, 0);
        assert_eq!(allowed.iter().filter(|allowed| **allowed).count(), 1);
        assert_eq!(case.left(&policy), [0, 9]);
    });
}

/// Kong 5763, zuul-ratelimit 200: no TTL was ever set when the first use had no cost or was denied.
#[test]
fn a_first_use_that_takes_nothing_leaves_no_key() {
    check(|case| {
        let policy = one(greedy(5, 1, 1_000));
        case.take(&policy, 0);
        case.take(&policy, 6);
        assert_eq!(case.store.entries(), []);
        case.take(&policy, 1);
        assert_eq!(case.ttl_ms(&case.limit_key("burst")), Some(1_000));
    });
}

/// redisson 4663: a later write dropped the TTL.
#[test]
fn each_of_two_calls_leaves_a_ttl() {
    check(|case| {
        let policy = one(greedy(5, 1, 1_000));
        for ttl_ms in [1_000, 2_000] {
            case.take(&policy, 1);
            assert_eq!(case.ttl_ms(&case.limit_key("burst")), Some(ttl_ms));
        }
    });
}

/// graphql-rate-limit 22: `EX 600.001`.
#[test]
fn seven_in_3_seconds_expire_in_whole_ms() {
    check(|case| {
        let policy = one(greedy(5, 7, 3_000));
        for ttl_ms in [429, 858, 1_286] {
            case.take(&policy, 1);
            assert_eq!(case.ttl_ms(&case.limit_key("burst")), Some(ttl_ms));
        }
    });
}

/// node-rate-limiter-flexible 86: a duration of 0 meant for ever.
#[test]
fn a_period_of_nothing_is_refused() {
    for mode in [Refill::Greedy, Refill::Interval] {
        let refused = Bucket::new(1, 1, 0, mode).unwrap_err();
        assert!(refused.to_string().contains("per is 0 ms: it must be from 1 ms"), "{refused}");
    }
}

/// spring-cloud-gateway PR 591, diom PR 115: denied calls moved the time of the last refill.
#[test]
fn one_a_second_called_every_600_ms_alternates() {
    check(|case| {
        let allowed = allowed(case, &one(greedy(1, 1, 1_000)), 8, 600);
        assert_eq!(allowed, [true, false, true, false, true, false, true, false]);
    });
    // In steps from the first take the same: those at 1,200 and 2,400 ms find a new period.
    check(|case| {
        let allowed = allowed(case, &one(interval(1, 1, 1_000)), 5, 600);
        assert_eq!(allowed, [true, false, true, false, true]);
    });
}

/// bucket4j 88: a partly refilled token was ignored.
#[test]
fn one_a_second_drained_200_ms_ago_waits_800() {
    check(|case| {
        let policy = one(greedy(1, 1, 1_000));
        case.take(&policy, 1);
        case.pass(200);
        assert_eq!(case.take(&policy, 1).waits_ms(), [Some(800)]);
        case.pass(800);
        assert!(case.take(&policy, 1).allowed());
    });
}

/// bucket4j 220: a cost above capacity got a finite wait.
#[test]
fn a_cost_of_6_never_passes_a_burst_of_5() {
    check(|case| {
        let policy = one(greedy(5, 1, 1_000));
        let denied = case.take(&policy, 6);
        assert_eq!((denied.reasons(), denied.waits_ms()), (vec![Reason::Never], vec![None]));
        assert_eq!(case.left(&policy), [5]);
    });
}

/// prorate PR 29: a clock of whole seconds.
#[test]
fn fifty_ms_across_a_second_are_half_a_token() {
    check(|case| {
        let policy = one(greedy(10, 10, 1_000));
        case.pass(950);
        case.take(&policy, 10);
        case.pass(50);
        assert_eq!(case.left(&policy), [0]);
        case.pass(50);
        assert_eq!(case.left(&policy), [1]);
    });
}

/// bucket4j 261, tbmq PR 355: a change never reached live keys.
#[test]
fn a_hundred_then_200_then_50_are_obeyed_at_once() {
    check(|case| {
        let of = |capacity| one(greedy(capacity, 1, 60_000));
        case.take(&of(100), 40);
        assert_eq!(case.take(&of(200), 1).left(), [59]);
        assert_eq!(case.take(&of(50), 1).left(), [49]);
        assert!(!case.take(&of(50), 50).allowed());
    });
}

/// redis-cell 54: a raised rate denied.
#[test]
fn a_raised_rate_leaves_12_of_16() {
    check(|case| {
        case.take(&one(greedy(16, 10, 20_000)), 4);
        let raised = one(greedy(16, 1_000, 20_000));
        assert_eq!(case.left(&raised), [12]);
        assert!(case.take(&raised, 12).allowed());
    });
}

/// unkey 5519: the limit was part of the key, so that a change there and back was a free refill.
#[test]
fn there_and_back_is_no_refill() {
    check(|case| {
        let (a, b) = (one(greedy(5, 1, 60_000)), one(greedy(7, 1, 60_000)));
        case.take(&a, 5);
        assert!(!case.take(&b, 1).allowed());
        assert!(!case.take(&a, 1).allowed());
    });
}
