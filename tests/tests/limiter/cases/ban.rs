//! Bans: so many denials inside a window, and the subject is denied for a time.

use std::sync::Arc;

use sluicegate_lua::{Ban, Policy, Take};
use sluicegate_wire::Reason;

use crate::{
    case::{Case, Heard, on_both_stores, unit},
    policies::{HOUR_MS, greedy, limits, policy},
};

on_both_stores![
    the_last_denial_strikes_at_once,
    a_peek_shows_denials_and_the_ban,
    while_it_lasts_nothing_is_written,
    it_ends_when_it_said,
    denials_count_inside_a_window_from_the_first,
    joined_denials_count_each,
    joined_denials_after_the_ban_dont_count,
    allowed_takes_and_looks_dont_count,
    shadow_denials_dont_count,
    a_shadow_check_hears_of_the_ban,
    only_the_policy_that_denied_counts,
    a_ban_on_one_policy_leaves_the_others_uncharged,
    a_cost_that_never_passes_counts_and_stays_never,
    a_reset_lifts_it,
    after_one_strikes_with_the_first_denial,
    a_changed_ban_is_obeyed_at_the_next_denial,
    a_stricter_ban_takes_no_denials_from_another,
    a_ban_taken_from_the_policy_is_over,
    a_shorter_ban_ends_sooner,
    checks_that_share_a_limit_take_from_it_together,
];

fn banning(after: u64, within_ms: u64, for_ms: u64) -> Arc<Policy> {
    let policy = limits(&[("a", greedy(2, 1, HOUR_MS)), ("b", greedy(4, 1, HOUR_MS))]);
    Arc::new(policy.with_ban(Ban::new(after, within_ms, for_ms).unwrap()))
}

/// Takes what there is, then one more for each denial.
fn denials(case: &Case, policy: &Arc<Policy>, denials: usize) -> Vec<Heard> {
    assert!(case.take(policy, 2).allowed());
    (0..denials).map(|_| case.take(policy, 1)).collect()
}

fn the_last_denial_strikes_at_once(case: &Case) {
    let heard = denials(case, &banning(3, HOUR_MS, 9 * HOUR_MS), 4);
    assert_eq!(heard[1].reasons(), [Reason::OverLimit, Reason::Ok]);
    assert_eq!(heard[2].reasons(), [Reason::Banned, Reason::Banned]);
    assert_eq!(heard[2].waits_ms(), [Some(9 * HOUR_MS); 2]);
    assert_eq!(heard[3].reasons(), [Reason::Banned, Reason::Banned]);
    assert_eq!(heard[3].longest_wait().1, heard[2].now_ms + 9 * HOUR_MS - heard[3].now_ms);
    let ttl_ms = case.ttl_ms(&case.keys.ban()).unwrap();
    assert!((9 * HOUR_MS - 60_000..=9 * HOUR_MS).contains(&ttl_ms), "{ttl_ms}");
}

fn a_peek_shows_denials_and_the_ban(case: &Case) {
    let policy = banning(3, HOUR_MS, 9 * HOUR_MS);
    denials(case, &policy, 2);
    let check = case.peek(&policy).checks.remove(0);
    assert_eq!((check.denials, check.ban_left_ms), (2, 0));
    let struck = case.take(&policy, 1);
    let peek = case.peek(&policy);
    assert_eq!(peek.checks[0].ban_left_ms, struck.now_ms + 9 * HOUR_MS - peek.now_ms);
    assert_eq!((peek.reasons(), peek.left()), (vec![Reason::Banned; 2], vec![0, 2]));
}

fn while_it_lasts_nothing_is_written(case: &Case) {
    let policy = banning(1, HOUR_MS, HOUR_MS);
    denials(case, &policy, 1);
    // Tokens that would be enough are no help.
    assert_eq!(case.give(&policy, 1, &[]), [1, 1]);
    let before = case.store.entries();
    for heard in [case.takes(&policy, 5, 1), case.takes(&policy, 1, 2), case.takes(&policy, 1, 9)].concat() {
        assert!(!heard.allowed());
    }
    let after = case.store.entries();
    let values = |entries: &[crate::store::Entry]| entries.iter().map(|entry| entry.value.clone()).collect::<Vec<_>>();
    assert_eq!(values(&after), values(&before));
    assert!(after.iter().zip(&before).all(|(after, before)| after.ttl_ms <= before.ttl_ms));
}

fn it_ends_when_it_said(case: &Case) {
    const FOR_MS: u64 = 30;
    let policy = banning(1, HOUR_MS, FOR_MS);
    let struck = denials(case, &policy, 1).remove(0);
    case.give(&policy, 1, &[]);
    loop {
        let heard = case.take(&policy, 1);
        let banned = heard.now_ms < struck.now_ms + FOR_MS;
        assert_eq!(heard.allowed(), !banned, "{heard:?}");
        if !banned {
            break;
        }
        case.pass(4);
    }
    assert_eq!(case.ttl_ms(&case.keys.ban()).unwrap_or(0), 0);
}

fn denials_count_inside_a_window_from_the_first(case: &Case) {
    const WITHIN_MS: u64 = 25;
    let policy = banning(1_000, WITHIN_MS, HOUR_MS);
    denials(case, &policy, 0);
    let (mut first_ms, mut counted) = (0, 0);
    for _ in 0..25 {
        let heard = case.take(&policy, 1);
        if heard.now_ms - first_ms >= WITHIN_MS {
            (first_ms, counted) = (heard.now_ms, 0);
        }
        assert_eq!(heard.checks[0].denials, counted, "{} ms after the first", heard.now_ms - first_ms);
        counted += 1;
        let ttl_ms = case.ttl_ms(&case.keys.ban()).unwrap_or(0);
        assert!(ttl_ms <= first_ms + WITHIN_MS - heard.now_ms, "{ttl_ms} ms");
        case.pass(4);
    }
}

fn joined_denials_count_each(case: &Case) {
    let policy = banning(10, HOUR_MS, HOUR_MS);
    let heard = case.takes(&policy, 6, 1);
    assert_eq!(heard.iter().filter(|heard| heard.allowed()).count(), 2);
    assert_eq!(case.peek(&policy).checks[0].denials, 4);
    case.takes(&policy, 3, 1);
    assert_eq!(case.peek(&policy).checks[0].denials, 7);
    let heard = case.takes(&policy, 5, 1);
    let banned: Vec<_> = heard.iter().map(|heard| heard.reasons()[0] == Reason::Banned).collect();
    // It strikes with the third of these.
    assert_eq!(banned, [false, false, true, true, true]);
    assert!(case.peek(&policy).checks[0].ban_left_ms > 0);
}

fn joined_denials_after_the_ban_dont_count(case: &Case) {
    let (short, long) = (case.subject("short", "s"), case.subject("long", "s"));
    let (two, nine) = (banning(2, HOUR_MS, HOUR_MS), banning(9, HOUR_MS, HOUR_MS));
    let check = [(&two, &short, 3), (&nine, &long, 3)];
    case.unit(7, &check);
    // The third to the seventh met the ban that the second one brought.
    let found = case.unit(1, &[(&two, &short, 0), (&nine, &long, 0)]).remove(0).checks;
    assert!(found[0].ban_left_ms > 0);
    assert_eq!((found[1].ban_left_ms, found[1].denials), (0, 2));
}

fn allowed_takes_and_looks_dont_count(case: &Case) {
    let policy = banning(1, HOUR_MS, HOUR_MS);
    case.take(&policy, 1);
    case.take(&policy, 1);
    case.takes(&policy, 9, 0);
    assert_eq!(case.ttl_ms(&case.keys.ban()), None);
    assert_eq!(case.peek(&policy).checks[0].denials, 0);
}

fn shadow_denials_dont_count(case: &Case) {
    let policy = banning(2, HOUR_MS, HOUR_MS);
    for _ in 0..5 {
        case.ask(&Take { takes: 3, units: vec![unit(&[(&policy, &case.keys, 3)], false)] });
    }
    assert_eq!(case.store.entries(), []);
    // Beside an enforced unit that does count.
    let enforced = case.subject("enforced", "s");
    let units = vec![unit(&[(&policy, &enforced, 3)], true), unit(&[(&policy, &case.keys, 3)], false)];
    case.ask(&Take { takes: 1, units });
    assert!(case.ttl_ms(&enforced.ban()).is_some());
    assert_eq!(case.ttl_ms(&case.keys.ban()), None);
}

fn a_shadow_check_hears_of_the_ban(case: &Case) {
    let policy = banning(1, HOUR_MS, HOUR_MS);
    denials(case, &policy, 1);
    let shadow = Take { takes: 1, units: vec![unit(&[(&policy, &case.keys, 1)], false)] };
    assert_eq!(case.ask(&shadow)[0][0].reasons(), [Reason::Banned; 2]);
}

fn only_the_policy_that_denied_counts(case: &Case) {
    let other = case.subject("other", "s");
    let (a, b) = (banning(9, HOUR_MS, HOUR_MS), banning(9, HOUR_MS, HOUR_MS));
    case.unit(1, &[(&a, &case.keys, 3), (&b, &other, 1)]);
    assert!(case.ttl_ms(&case.keys.ban()).is_some());
    assert_eq!(case.ttl_ms(&other.ban()), None);
}

fn a_ban_on_one_policy_leaves_the_others_uncharged(case: &Case) {
    let other = case.subject("other", "s");
    let (banned, idle) = (banning(1, HOUR_MS, HOUR_MS), policy(&[("a", greedy(5, 1, HOUR_MS))]));
    denials(case, &banned, 1);
    let heard = case.unit(2, &[(&idle, &other, 1), (&banned, &case.keys, 1)]);
    assert_eq!(heard[0].reasons(), [Reason::Ok, Reason::Banned, Reason::Banned]);
    assert_eq!(case.unit(1, &[(&idle, &other, 0)])[0].left(), [5]);
}

fn a_cost_that_never_passes_counts_and_stays_never(case: &Case) {
    let policy = banning(2, HOUR_MS, HOUR_MS);
    case.take(&policy, 3);
    let heard = case.take(&policy, 3);
    assert_eq!(heard.reasons(), [Reason::Never, Reason::Banned]);
    assert_eq!(heard.waits_ms(), [None, Some(HOUR_MS)]);
    assert_eq!(case.take(&policy, 1).reasons(), [Reason::Banned; 2]);
}

fn a_reset_lifts_it(case: &Case) {
    let policy = banning(2, HOUR_MS, HOUR_MS);
    denials(case, &policy, 2);
    assert!(!case.peek(&policy).allowed());
    case.reset(&policy);
    assert_eq!(case.take(&policy, 1).left(), [1, 3]);
    // And forgets the denials.
    case.take(&policy, 2);
    case.reset(&policy);
    assert_eq!(case.peek(&policy).checks[0].denials, 0);
}

fn after_one_strikes_with_the_first_denial(case: &Case) {
    let policy = banning(1, 1, 1);
    case.take(&policy, 2);
    let struck = case.take(&policy, 1);
    assert_eq!(struck.reasons(), [Reason::Banned; 2]);
    // The limit's own wait is the longer one.
    assert!(struck.waits_ms()[0] > Some(1) && struck.waits_ms()[1] == Some(1), "{struck:?}");
}

fn a_changed_ban_is_obeyed_at_the_next_denial(case: &Case) {
    denials(case, &banning(9, HOUR_MS, HOUR_MS), 5);
    let stricter = banning(3, HOUR_MS, HOUR_MS);
    assert!(case.peek(&stricter).allowed());
    assert_eq!(case.take(&stricter, 1).reasons(), [Reason::Banned; 2]);
    case.reset(&stricter);
    // Denials that the new window doesn't reach are forgotten.
    denials(case, &banning(9, HOUR_MS, HOUR_MS), 2);
    case.pass(8);
    assert_eq!(case.peek(&banning(9, 5, HOUR_MS)).checks[0].denials, 0);
}

fn a_stricter_ban_takes_no_denials_from_another(case: &Case) {
    let other = case.subject("other", "s");
    let (nine, stricter) = (banning(9, HOUR_MS, HOUR_MS), banning(2, HOUR_MS, HOUR_MS));
    for policy in [&nine, &stricter] {
        case.unit(5, &[(&nine, &other, 3), (policy, &case.keys, 3)]);
    }
    let found = case.unit(1, &[(&nine, &other, 0), (&stricter, &case.keys, 0)]).remove(0).checks;
    assert_eq!(found[0].denials, 6);
    assert!(found[1].ban_left_ms > 0);
}

fn a_ban_taken_from_the_policy_is_over(case: &Case) {
    denials(case, &banning(1, HOUR_MS, HOUR_MS), 1);
    let without = policy(&[("a", greedy(2, 1, HOUR_MS)), ("b", greedy(4, 1, HOUR_MS))]);
    assert_eq!(case.peek(&without).reasons(), [Reason::Ok; 2]);
    assert_eq!(case.take(&without, 1).reasons(), [Reason::OverLimit, Reason::Ok]);
}

fn a_shorter_ban_ends_sooner(case: &Case) {
    let struck = denials(case, &banning(1, HOUR_MS, 9 * HOUR_MS), 1).remove(0);
    let peek = case.peek(&banning(1, HOUR_MS, HOUR_MS));
    assert_eq!(peek.checks[0].ban_left_ms, struck.now_ms + HOUR_MS - peek.now_ms);
    case.pass(2);
    assert_eq!(case.peek(&banning(1, HOUR_MS, 1)).checks[0].ban_left_ms, 0);
}

/// The service merges such checks; the script must not depend on it.
fn checks_that_share_a_limit_take_from_it_together(case: &Case) {
    let policy = Arc::new(limits(&[("a", greedy(5, 1, HOUR_MS))]));
    let take = Take { takes: 1, units: vec![unit(&[(&policy, &case.keys, 3), (&policy, &case.keys, 3)], true)] };
    let reply = case.store.run(&take.call(case.store.now_ms())).unwrap();
    assert_eq!(reply[1], 0, "granted 6 of 5: {reply:?}");
    assert_eq!(case.left(&policy), [5]);
}
