//! The caller's clock and the server's.

use super::{KEY, START_MS, call, on_both_stores, take};
use crate::{case::Case, policies::DAY_MS, rig::Rig, store::Store};

on_both_stores![
    a_late_call_moves_nothing_back,
    two_callers_3_seconds_apart_mint_nothing,
    the_servers_clock_refills,
    a_call_ahead_of_all_others_heals_within_one_refill,
    without_refill_the_key_is_kept_366_days,
];

/// spring-cloud-gateway 2412, go-zero 4072.
fn a_late_call_moves_nothing_back(case: &Case) {
    let ten_ms = START_MS + 10_000;
    assert_eq!(take(case, "5", "1", ten_ms, 5), [1, 0, 0]);
    assert_eq!(take(case, "5", "1", ten_ms - 1_000, 1), [0, 0, 2]);
    assert_eq!(take(case, "5", "1", ten_ms, 1), [0, 0, 1]);
    assert_eq!(take(case, "5", "1", ten_ms + 1_000, 1), [1, 0, 0]);
    // A late call that is allowed moves it no more than a denied one.
    assert_eq!(take(case, "5", "1", ten_ms + 4_000, 1), [1, 2, 0]);
    assert_eq!(take(case, "5", "1", ten_ms + 2_000, 1), [1, 1, 0]);
    assert_eq!(take(case, "5", "1", ten_ms + 4_000, 0), [1, 1, 0]);
}

fn two_callers_3_seconds_apart_mint_nothing(case: &Case) {
    two_callers(case, 10, 2);
}

/// To the one behind the bucket is further ahead than a whole refill: still no time to go back to.
#[test]
fn two_callers_further_apart_than_a_refill_mint_nothing() {
    super::run(Store::embedded(), |case| {
        two_callers(case, 10, 20);
        assert_eq!(take(case, "10", "20", START_MS, 6), [1, 4, 0]);
        assert_eq!(take(case, "10", "20", START_MS - 3_000, 1), [1, 3, 0]);
        assert_eq!(take(case, "10", "20", START_MS, 1), [1, 2, 0]);
    });
}

fn two_callers(case: &Case, capacity: u64, rate: u64) {
    for first in [0, 1] {
        let (mut nows_ms, mut admitted) = (Vec::new(), 0);
        for step in 0..120 {
            let behind_ms = if (step + first) % 2 == 0 { 0 } else { 3_000 };
            let now_ms = START_MS + step * 100 - behind_ms;
            nows_ms.push(now_ms);
            while take(case, &capacity.to_string(), &rate.to_string(), now_ms, 1)[0] == 1 {
                admitted += 1;
            }
        }
        let furthest_ms = nows_ms.iter().max().unwrap();
        let most = capacity + rate * (furthest_ms - nows_ms[0]) / 1_000;
        // The one that is ahead gets its rate all the same.
        let least = rate * (furthest_ms - START_MS - 100) / 1_000;
        assert!((least..=most).contains(&admitted), "{admitted}, not {least} to {most}");
        case.delete(KEY);
    }
}

fn the_servers_clock_refills(case: &Case) {
    // One in 5 ms. The replies don't name the server's time: it is between two looks at the clock.
    let before_ms = case.store.now_ms();
    assert_eq!(take(case, "40", "200", 0, 40), [1, 0, 0]);
    let mut admitted = 40;
    let after_ms = case.store.now_ms();
    for _ in 0..12 {
        let mut asked_ms = case.store.now_ms();
        while take(case, "40", "200", 0, 1)[0] == 1 {
            admitted += 1;
            asked_ms = case.store.now_ms();
        }
        let now_ms = case.store.now_ms();
        assert!(admitted <= 40 + (now_ms + 1 - before_ms) / 5, "{admitted} in {} ms", now_ms - before_ms);
        // Not so late that it can have been full in between: nothing was lost.
        if now_ms - before_ms < 200 {
            assert!(admitted + 1 >= 40 + (asked_ms - after_ms) / 5, "{admitted} in {} ms", asked_ms - after_ms);
        }
        case.pass(6);
    }
}

fn a_call_ahead_of_all_others_heals_within_one_refill(case: &Case) {
    // A caller whose clock is a day ahead drains it; what is missing is there again in 40 ms all the same.
    let now_ms = case.store.now_ms();
    assert_eq!(take(case, "4", "100", now_ms + DAY_MS, 4), [1, 0, 0]);
    case.pass(41);
    assert_eq!(take(case, "4", "100", now_ms, 4), [1, 0, 0]);
}

fn without_refill_the_key_is_kept_366_days(case: &Case) {
    assert_eq!(take(case, "2", "0", START_MS, 1), [1, 1, 0]);
    assert_eq!(take(case, "2", "0", START_MS + DAY_MS, 1), [1, 0, 0]);
    for later_ms in [0, 400 * DAY_MS] {
        assert_eq!(take(case, "2", "0", START_MS + later_ms, 1), [0, 0, -1]);
        assert_eq!(take(case, "2", "0.0", START_MS + later_ms, 3), [0, 0, -1]);
        assert_eq!(take(case, "2", "0", START_MS + later_ms, 0), [1, 0, 0]);
    }
    case.delete(KEY);
    take(case, "9", "0", START_MS, 2);
    assert_eq!(take(case, "5", "0", START_MS, 0), [1, 5, 0], "a lower capacity clamps");
    assert_eq!(take(case, "9", "0", START_MS, 1), [1, 6, 0]);
    let ttl_ms = case.store.entries()[0].ttl_ms.unwrap();
    assert!(ttl_ms > 366 * DAY_MS - 60_000 && ttl_ms <= 366 * DAY_MS, "{ttl_ms}");
}

/// By the server's own clock a step further back than a whole refill is the time now.
#[test]
fn a_server_clock_set_right_is_accepted() {
    super::run(Store::embedded(), |case| {
        let Store::Embedded(rig) = &case.store else { unreachable!("it was made above") };
        let left = |rig: &Rig| rig.memory.run(&look()).unwrap()[1];
        let look_and_step = |back_ms| {
            take(case, "5", "1", 0, 4);
            rig.step_back(back_ms);
            left(rig)
        };
        assert_eq!(look_and_step(5_000), 1);
        rig.pause(5_000 + 2_000);
        assert_eq!(left(rig), 3);
        rig.pause(10_000);
        assert_eq!(look_and_step(3_600_000), 1);
        rig.pause(2_000);
        assert_eq!(left(rig), 1, "a look doesn't set it right");
        assert_eq!(take(case, "5", "1", 0, 1), [1, 0, 0]);
        rig.pause(2_000);
        assert_eq!(left(rig), 2);
    });
}

fn look() -> sluicegate_lua::Call {
    let args = ["5", "1", "0", "0"].map(str::to_owned).to_vec();
    sluicegate_lua::Call { script: &sluicegate_lua::TOKEN_BUCKET, keys: vec![KEY.to_owned()], args }
}

/// prorate PR 40: a float in the reply was truncated, 0.4 s to wait became 0.
#[test]
fn a_wait_of_400_ms_is_a_second() {
    super::run(Store::embedded(), |case| {
        take(case, "1", "2.5", 0, 1);
        assert_eq!(take(case, "1", "2.5", 0, 1), [0, 0, 1]);
        case.pass(399);
        assert_eq!(take(case, "1", "2.5", 0, 1), [0, 0, 1]);
        case.pass(1);
        assert_eq!(take(case, "1", "2.5", 0, 1), [1, 0, 0]);
        // limits PR 362: a negative cost minted tokens.
        for cost in ["-1", "-100"] {
            assert!(call(case, &[KEY], &["1", "2.5", "0", cost]).is_err());
        }
        assert_eq!(take(case, "1", "2.5", 0, 1), [0, 0, 1]);
    });
}
