//! A clock that jumps, forward and back.

use std::sync::Arc;

use sluicegate_lua::{Ban, MAX_FILL_MS, Policy};

use crate::{
    policies::{HOUR_MS, greedy, interval, limits, one},
    rig::Rig,
};

fn granted(rig: &Rig, policy: &Arc<Policy>, takes: u64, cost: u64) -> u64 {
    rig.take(policy, takes, cost, true).1.units[0].granted
}

fn left(rig: &Rig, policy: &Arc<Policy>) -> u64 {
    rig.take(policy, 1, 0, true).1.units[0].checks[0].levels[0].tokens()
}

fn ttl_ms(rig: &Rig) -> Option<u64> {
    rig.memory.entries().first().map(|(_, _, ttl_ms)| *ttl_ms)
}

/// spring-cloud-gateway 2412, go-zero 4072: a late call moved the last refill back, and the next one refilled twice.
#[test]
fn a_step_back_and_forth_refills_nothing() {
    for rule in [greedy(10, 1, 1_000), interval(10, 10, 10_000)] {
        let (rig, policy) = (Rig::new(), one(rule));
        rig.pause(10_000);
        assert_eq!(granted(&rig, &policy, 1, 5), 1);
        rig.step_back(1_000);
        assert_eq!((left(&rig, &policy), granted(&rig, &policy, 1, 1)), (5, 1));
        rig.pause(1_000);
        assert_eq!(left(&rig, &policy), 4);
        rig.assert_tidy();
    }
}

/// Each way the clock steps back, only time that passes forward brings tokens.
#[test]
fn a_clock_that_swings_mints_nothing() {
    for swing_ms in [1, 999, 1_000, 4_999, 5_001, 60_000, HOUR_MS] {
        let (rig, policy) = (Rig::new(), one(greedy(5, 1, 1_000)));
        rig.pause(2 * HOUR_MS);
        let mut admitted = granted(&rig, &policy, 9, 1);
        for _ in 0..10 {
            rig.step_back(swing_ms);
            admitted += granted(&rig, &policy, 9, 1);
            // Back to just where it was, as the TTL of the real store's keys reckons too.
            rig.pause(swing_ms);
            admitted += granted(&rig, &policy, 9, 1);
        }
        let forward_ms = 10 * swing_ms;
        assert!(admitted <= 5 + forward_ms / 1_000, "{admitted} with a swing of {swing_ms} ms");
    }
}

/// Ahead of the clock by no more than a refill, the bucket waits; the TTL comes from what is missing alone.
#[test]
fn a_bucket_ahead_of_the_clock_heals_within_one_refill() {
    for rule in [greedy(5, 1, 1_000), interval(5, 5, 5_000)] {
        for back_ms in [1, 3_000, 5_000] {
            let (rig, policy) = (Rig::new(), one(rule.clone()));
            granted(&rig, &policy, 1, 4);
            rig.step_back(back_ms);
            assert_eq!(granted(&rig, &policy, 2, 1), 1);
            assert_eq!(ttl_ms(&rig), Some(5_000), "{back_ms} ms back");
            rig.pause(5_000);
            assert_eq!(left(&rig, &policy), 5);
        }
    }
}

/// Further back than a whole refill it is the new time, and adds nothing.
#[test]
fn a_clock_set_right_is_accepted() {
    for rule in [greedy(5, 1, 1_000), interval(5, 5, 5_000)] {
        let (rig, policy) = (Rig::new(), one(rule));
        granted(&rig, &policy, 1, 4);
        rig.step_back(5_001);
        assert_eq!(left(&rig, &policy), 1);
        assert_eq!(granted(&rig, &policy, 2, 1), 1);
        let denied = rig.take(&policy, 1, 1, true).1.units[0].checks[0].levels[0].clone();
        assert!(matches!(denied, sluicegate_lua::Level::Bucket { last_ms, .. } if last_ms == rig.now_ms()));
        rig.pause(5_000);
        assert_eq!(left(&rig, &policy), 5);
    }
}

#[test]
fn a_jump_forward_fills_and_no_more() {
    let (rig, policy) = (Rig::new(), one(greedy(5, 1, 1_000)));
    granted(&rig, &policy, 5, 1);
    rig.pause(MAX_FILL_MS);
    assert_eq!(granted(&rig, &policy, 9, 1), 5);
    rig.pause(1_500);
    assert_eq!(granted(&rig, &policy, 9, 1), 1);
}

/// The quota's window that was charged goes on when the clock falls back over its beginning.
#[test]
fn a_step_back_over_a_boundary_opens_no_second_window() {
    let rig = Rig::new();
    let minute = sluicegate_lua::Quota::new(3, sluicegate_lua::Every::Minute, "UTC").unwrap();
    let policy = one(minute.into());
    rig.pause(60_000 - rig.now_ms() % 60_000);
    assert_eq!(granted(&rig, &policy, 2, 1), 2);
    // What is taken before the boundary comes round again counts beyond it too.
    rig.step_back(1);
    assert_eq!(granted(&rig, &policy, 5, 1), 1);
    rig.pause(1);
    assert_eq!(granted(&rig, &policy, 5, 1), 0);
    rig.step_back(90_001);
    assert_eq!(granted(&rig, &policy, 5, 1), 0);
    rig.pause(90_001 + 60_000);
    assert_eq!(granted(&rig, &policy, 5, 1), 3);
    rig.assert_tidy();
}

/// The 23 hours of a day that loses one are one window.
#[test]
fn a_short_day_is_one_window() {
    let rig = Rig::new();
    let daily = sluicegate_lua::Quota::new(3, sluicegate_lua::Every::Day, "Europe/Paris").unwrap();
    let policy = one(daily.into());
    // 28 March 2027, 00:00 in Paris.
    const MIDNIGHT_MS: u64 = 1_806_188_400_000;
    rig.pause(MIDNIGHT_MS - rig.now_ms());
    assert_eq!(granted(&rig, &policy, 5, 1), 3);
    assert_eq!(ttl_ms(&rig), Some(23 * HOUR_MS));
    rig.pause(23 * HOUR_MS - 1);
    assert_eq!(granted(&rig, &policy, 5, 1), 0);
    rig.pause(1);
    assert_eq!(granted(&rig, &policy, 5, 1), 3);
    assert_eq!(ttl_ms(&rig), Some(24 * HOUR_MS));
}

#[test]
fn a_ban_after_a_step_back_lasts_at_most_a_whole_one() {
    let policy = limits(&[("burst", greedy(1, 1, 1))]).with_ban(Ban::new(1, 1_000, 500).unwrap());
    let (rig, policy) = (Rig::new(), Arc::new(policy));
    granted(&rig, &policy, 2, 1);
    rig.step_back(HOUR_MS);
    let taken = rig.take(&policy, 1, 1, true).1;
    assert_eq!((taken.units[0].granted, taken.units[0].checks[0].ban_left_ms), (0, 500));
    rig.pause(HOUR_MS + 500);
    assert_eq!(granted(&rig, &policy, 1, 1), 1);
}

#[test]
fn denials_of_another_time_are_forgotten() {
    let policy = limits(&[("burst", greedy(1, 1, HOUR_MS))]).with_ban(Ban::new(3, 1_000, 500).unwrap());
    let (rig, policy) = (Rig::new(), Arc::new(policy));
    granted(&rig, &policy, 3, 1);
    let denials = |rig: &Rig| rig.take(&policy, 1, 0, true).1.units[0].checks[0].denials;
    assert_eq!(denials(&rig), 2);
    rig.step_back(999);
    assert_eq!(denials(&rig), 2);
    rig.step_back(1);
    assert_eq!(denials(&rig), 0);
}
