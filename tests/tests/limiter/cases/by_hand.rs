//! What an operator does to a subject: bans, and looks at numbers of its own.

use std::sync::Arc;

use sluicegate_lua::{
    Ban, BanNow, BanNowError, MAX_FILL_MS, Override, OwnNumbers, Policy, Reset, Rule, StoredOverride,
};
use sluicegate_wire::Reason;

use crate::{
    case::{Case, on_both_stores},
    policies::{HOUR_MS, daily, greedy, interval, limits, policy},
};

on_both_stores![
    a_ban_by_hand_holds_at_the_next_take,
    it_lasts_as_long_as_it_says_whatever_the_policys_ban,
    a_policy_without_a_ban_can_not_ban,
    lifting_a_ban_forgets_denials_and_keeps_tokens,
    no_override_reads_as_none,
    an_override_reads_back_as_it_was_set,
    reading_an_override_does_not_renew_it,
    a_foreign_value_is_no_override,
];

fn banning() -> Arc<Policy> {
    Arc::new(limits(&[("a", greedy(5, 1, HOUR_MS))]).with_ban(Ban::new(3, HOUR_MS, 2 * HOUR_MS).unwrap()))
}

fn ban(case: &Case, policy: &Policy, for_ms: Option<u64>) {
    assert_eq!(case.store.run(&BanNow::new(policy, for_ms).unwrap().call(&case.keys)).unwrap(), [1]);
}

fn lift(case: &Case) -> u64 {
    Reset::read(&case.store.run(&BanNow::lift(&case.keys)).unwrap()).unwrap()
}

fn stored(case: &Case) -> Option<StoredOverride> {
    StoredOverride::read(&case.store.run(&StoredOverride::call(&case.keys)).unwrap()).unwrap()
}

fn a_ban_by_hand_holds_at_the_next_take(case: &Case) {
    let policy = banning();
    let before = case.peek(&policy);
    ban(case, &policy, None);
    let denied = case.take(&policy, 1);
    assert_eq!((denied.reasons(), denied.left()), (vec![Reason::Banned], vec![5]));
    let left_ms = denied.checks[0].ban_left_ms;
    let since_ms = denied.now_ms - before.now_ms;
    assert!((2 * HOUR_MS - since_ms..=2 * HOUR_MS).contains(&left_ms), "{left_ms}");
}

fn it_lasts_as_long_as_it_says_whatever_the_policys_ban(case: &Case) {
    let policy = banning();
    for for_ms in [MAX_FILL_MS, 9 * HOUR_MS, HOUR_MS] {
        let before = case.peek(&policy);
        ban(case, &policy, Some(for_ms));
        let peek = case.peek(&policy);
        let since_ms = peek.now_ms - before.now_ms;
        assert!((for_ms - since_ms..=for_ms).contains(&peek.checks[0].ban_left_ms), "{peek:?}");
    }
    ban(case, &policy, Some(25));
    for _ in 0..4 {
        case.pass(7);
    }
    assert!(case.take(&policy, 5).allowed());
    for for_ms in [0, MAX_FILL_MS + 1] {
        assert_eq!(BanNow::new(&policy, Some(for_ms)).unwrap_err(), BanNowError::Lasts(for_ms));
    }
}

fn a_policy_without_a_ban_can_not_ban(_: &Case) {
    let refused = BanNow::new(&policy(&[("a", greedy(5, 1, HOUR_MS))]), Some(1)).unwrap_err();
    assert_eq!(refused, BanNowError::NoBan("p".parse().unwrap()));
    assert!(refused.to_string().contains("add ban: { after, within, for }"), "{refused}");
}

fn lifting_a_ban_forgets_denials_and_keeps_tokens(case: &Case) {
    let policy = banning();
    case.take(&policy, 4);
    ban(case, &policy, None);
    assert_eq!(lift(case), 1);
    assert_eq!(case.left(&policy), [1]);
    for _ in 0..2 {
        case.take(&policy, 2);
    }
    assert_eq!(case.peek(&policy).checks[0].denials, 2);
    assert_eq!(lift(case), 1);
    assert_eq!(case.peek(&policy).checks[0].denials, 0);
    assert_eq!(lift(case), 0);
}

fn no_override_reads_as_none(case: &Case) {
    assert_eq!(stored(case), None);
    assert_eq!(case.store.entries(), []);
}

fn an_override_reads_back_as_it_was_set(case: &Case) {
    let (capacity, refill) = (1 << 30, 1 << 29);
    let expected = [
        OwnNumbers::Bucket { capacity: 9, refill: 1, per_ms: HOUR_MS / 2, interval: false },
        OwnNumbers::Bucket { capacity, refill, per_ms: HOUR_MS, interval: true },
        OwnNumbers::Quota(8),
    ];
    let own: [(&str, Rule); 3] = [
        ("a", greedy(9, 2, HOUR_MS)),
        ("b", interval(capacity, refill, HOUR_MS)),
        ("c", daily(8, case.store.now_ms())),
    ];
    let policy = limits(&[("a", greedy(1, 1, 1)), ("b", interval(1, 1, 1)), ("c", daily(1, case.store.now_ms()))]);
    let policy = policy.with_overrides();
    let named: Vec<_> = own.iter().map(|(name, rule)| (name.parse().unwrap(), rule.clone())).collect();
    for (lasts_ms, keep) in [(None, true), (Some(HOUR_MS), false)] {
        case.store.run(&Override::new(&policy, &named, lasts_ms).unwrap().call(&case.keys)).unwrap();
        let stored = stored(case).unwrap();
        assert_eq!(stored.keep, keep);
        let most_ms = lasts_ms.unwrap_or(MAX_FILL_MS);
        assert!((most_ms - 60_000..=most_ms).contains(&stored.left_ms), "{stored:?}");
        let numbers: Vec<_> = stored.limits.iter().map(|(name, numbers)| (name.as_str(), *numbers)).collect();
        assert_eq!(numbers, [("a", expected[0]), ("b", expected[1]), ("c", expected[2])]);
    }
}

fn reading_an_override_does_not_renew_it(case: &Case) {
    case.write(&case.keys.overrides(), "keep\na g 1 1 1\n", 60_000);
    assert!(stored(case).unwrap().left_ms <= 60_000);
    assert!(case.ttl_ms(&case.keys.overrides()).unwrap() <= 60_000);
}

fn a_foreign_value_is_no_override(case: &Case) {
    for text in ["x", "\nburst", "\nburst g 1 1", "\nburst g 1 1 1 1", "\nburst z 1", "\n{ q 1", &"\n".repeat(9_000)] {
        case.write(&case.keys.overrides(), text, 60_000);
        let reply = case.store.run(&StoredOverride::call(&case.keys)).unwrap();
        assert!(StoredOverride::read(&reply).is_err(), "{text:?}");
    }
}
