//! Calendar quotas. Which instants begin a window is the calendar's own test (`lua/src/quota.rs`).

use std::sync::Arc;

use sluicegate_lua::{Answer, Gift, Give, Policy, Take};
use sluicegate_wire::Reason;

use crate::{
    case::{Case, charge, on_both_stores, unit},
    policies::{DAY_MS, HOUR_MS, daily, one},
};

on_both_stores![
    a_window_admits_its_quota,
    more_than_the_quota_never_passes,
    the_next_window_starts_anew,
    the_count_goes_with_its_window,
    another_time_than_covered_writes_nothing,
    another_time_than_covered_gives_nothing,
    a_refund_reaches_only_the_window_that_was_charged,
    a_full_refund_leaves_no_key,
    a_count_that_outlives_its_window_is_forgotten,
    the_largest_quota_is_exact,
];

fn of_today(case: &Case, quota: u64) -> Arc<Policy> {
    one(daily(quota, case.store.now_ms()))
}

fn a_window_admits_its_quota(case: &Case) {
    let policy = of_today(case, 3);
    let heard: Vec<_> = (0..5).map(|_| case.take(&policy, 1)).collect();
    assert_eq!(heard.iter().map(|heard| heard.left()[0]).collect::<Vec<_>>(), [2, 1, 0, 0, 0]);
    let (denied, window) = (&heard[4], &heard[4].checks[0].levels[0]);
    assert_eq!((denied.reasons(), window.window_ms()), (vec![Reason::OverLimit], DAY_MS));
    assert_eq!(denied.waits_ms(), [Some(window.stamp() + DAY_MS - denied.now_ms)]);
}

fn more_than_the_quota_never_passes(case: &Case) {
    let policy = of_today(case, 3);
    assert_eq!(case.take(&policy, 4).reasons(), [Reason::Never]);
    assert_eq!(case.store.entries(), []);
    assert!(case.take(&policy, 3).allowed());
}

/// A take of one from a quota with windows of the test's own: the service passes the calendar's, some hours away.
fn take_in(case: &Case, policy: &Arc<Policy>, windows_ms: [u64; 5]) -> Option<(u64, u64)> {
    let take = Take { takes: 1, units: vec![unit(&[(policy, &case.keys, 1)], true)] };
    let mut call = take.call(case.store.now_ms());
    let first = call.args.len() - windows_ms.len();
    (call.args[0], call.args[1]) = (windows_ms[0].to_string(), windows_ms[4].to_string());
    for (argument, window_ms) in call.args[first..].iter_mut().zip(windows_ms) {
        *argument = window_ms.to_string();
    }
    match take.read(&case.store.run(&call).unwrap()).unwrap() {
        Answer::Done(taken) => Some((taken.units[0].checks[0].now_ms, taken.units[0].granted)),
        Answer::OtherTime { .. } => None,
    }
}

fn the_next_window_starts_anew(case: &Case) {
    const WINDOW_MS: u64 = 30;
    let policy = of_today(case, 2);
    let start_ms = case.store.now_ms();
    let windows_ms = [0, 1, 2, 3, 4].map(|window| start_ms + window * WINDOW_MS);
    let mut admitted = [0; 4];
    let mut asked = [0; 4];
    while let Some((now_ms, granted)) = take_in(case, &policy, windows_ms) {
        let window = usize::try_from((now_ms - start_ms) / WINDOW_MS).unwrap();
        admitted[window] += granted;
        asked[window] += 1;
        case.pass(3);
    }
    assert_eq!(admitted, asked.map(|asked: u64| asked.min(2)), "{asked:?}");
}

fn the_count_goes_with_its_window(case: &Case) {
    let policy = of_today(case, 2);
    let now_ms = case.store.now_ms();
    let windows_ms = [now_ms - 1_000, now_ms - 500, now_ms + 40_000, now_ms + 50_000, now_ms + 60_000];
    take_in(case, &policy, windows_ms);
    let ttl_ms = case.ttl_ms(&case.limit_key("burst")).unwrap();
    assert!((30_000..=40_000).contains(&ttl_ms), "{ttl_ms}");
}

fn another_time_than_covered_writes_nothing(case: &Case) {
    let policy = of_today(case, 3);
    case.take(&policy, 1);
    let before = case.store.entries();
    let take = Take { takes: 2, units: vec![unit(&[(&policy, &case.keys, 1)], true)] };
    let now_ms = case.store.now_ms();
    for elsewhere_ms in [now_ms - 10 * DAY_MS, now_ms + 3 * DAY_MS] {
        let reply = case.store.run(&take.call(elsewhere_ms)).unwrap();
        let Answer::OtherTime { now_ms: told_ms } = take.read(&reply).unwrap() else { panic!("{reply:?}") };
        assert!((now_ms..now_ms + 60_000).contains(&told_ms));
    }
    assert_eq!(case.store.entries()[0].value, before[0].value);
    // Made anew for the time that was told, it passes.
    assert_eq!(case.left(&policy), [2]);
    // A day off either way is still covered: clocks of service and store may differ.
    for nearby_ms in [now_ms - DAY_MS, now_ms + DAY_MS] {
        let reply = case.store.run(&take.call(nearby_ms)).unwrap();
        assert!(matches!(take.read(&reply).unwrap(), Answer::Done(_)));
    }
    assert_eq!(case.left(&policy), [0]);
}

fn another_time_than_covered_gives_nothing(case: &Case) {
    let policy = of_today(case, 3);
    case.take(&policy, 2);
    let give = Give { gifts: vec![Gift { charge: charge(&policy, &case.keys, 1), stamps: Vec::new() }] };
    let reply = case.store.run(&give.call(case.store.now_ms() - 10 * DAY_MS)).unwrap();
    assert!(matches!(give.read(&reply).unwrap(), Answer::OtherTime { .. }));
    assert_eq!(case.left(&policy), [1]);
}

fn a_refund_reaches_only_the_window_that_was_charged(case: &Case) {
    let policy = of_today(case, 5);
    let charged_ms = case.take(&policy, 3).checks[0].levels[0].stamp();
    for other_ms in [charged_ms - DAY_MS, charged_ms + DAY_MS, charged_ms - 1] {
        assert_eq!(case.give(&policy, 1, &[other_ms]), [0]);
    }
    assert_eq!(case.left(&policy), [2]);
    assert_eq!(case.give(&policy, 1, &[charged_ms]), [1]);
    assert_eq!(case.give(&policy, 1, &[]), [1], "a grant goes to the window that is");
    assert_eq!(case.left(&policy), [4]);
    let ttl_ms = case.ttl_ms(&case.limit_key("burst")).unwrap();
    assert!(ttl_ms > HOUR_MS / 2 && ttl_ms <= DAY_MS);
}

fn a_full_refund_leaves_no_key(case: &Case) {
    let policy = of_today(case, 5);
    let charged_ms = case.take(&policy, 3).checks[0].levels[0].stamp();
    assert_eq!(case.give(&policy, 9, &[charged_ms]), [3]);
    assert_eq!(case.store.entries(), []);
}

fn a_count_that_outlives_its_window_is_forgotten(case: &Case) {
    let policy = of_today(case, 1);
    let now_ms = case.store.now_ms();
    let end_ms = now_ms + 30;
    let windows_ms = [now_ms - 2_000, now_ms - 1_000, end_ms, now_ms + 60_000, now_ms + 120_000];
    let (first_ms, granted) = take_in(case, &policy, windows_ms).expect("a window");
    assert_eq!(granted, 1);
    case.outlive(&case.limit_key("burst"));
    case.pass(31);
    let (_, granted) = take_in(case, &policy, windows_ms).expect("the next window");
    assert_eq!(granted, u64::from(first_ms < end_ms), "{first_ms}, {windows_ms:?}");
}

fn the_largest_quota_is_exact(case: &Case) {
    let policy = of_today(case, (1 << 53) - 1);
    assert_eq!(case.take(&policy, (1 << 53) - 3).left(), [2]);
    assert_eq!(case.take(&policy, 1).left(), [1]);
    assert_eq!(case.take(&policy, 2).reasons(), [Reason::OverLimit]);
    assert_eq!(case.give(&policy, (1 << 53) - 3, &[]), [(1 << 53) - 3]);
    assert_eq!(case.left(&policy), [(1 << 53) - 2]);
}
