//! Subjects and their keys.

use std::collections::BTreeSet;

use sluicegate_lua::{Ban, Keys};

use crate::{
    case::{Case, on_both_stores},
    policies::{HOUR_MS, greedy, limits},
    slot::slot,
};

on_both_stores![no_subject_shares_a_key_with_another_or_leaves_its_slot, subjects_spread_over_the_slots,];

/// What attackers send: braces to leave the slot, separators to meet another's key, bytes to break a command.
const ODD: [&str; 20] = [
    "",
    " ",
    "}x",
    "{",
    "}",
    "{}",
    "a}b",
    "{u1}",
    "u1",
    "u1:burst",
    "u1}:burst",
    "u1!ban",
    "a+b",
    "a%2Bb",
    "#00",
    "\0",
    "a\r\nDEL b",
    "é",
    "e\u{301}",
    "*",
];

fn no_subject_shares_a_key_with_another_or_leaves_its_slot(case: &Case) {
    let policy = limits(&[("burst", greedy(1, 1, HOUR_MS)), ("burst2", greedy(2, 1, HOUR_MS))]);
    let policy = std::sync::Arc::new(policy.with_ban(Ban::new(2, HOUR_MS, HOUR_MS).unwrap()));
    let long = ["x".repeat(65_536), "x".repeat(65_537), "}".repeat(200)];
    let subjects = ODD.iter().copied().chain(long.iter().map(String::as_str));
    let keys: Vec<Keys> = subjects.map(|subject| case.subject("p", subject)).collect();
    for subject in &keys {
        let allowed: Vec<_> = (0..2).map(|_| case.unit(1, &[(&policy, subject, 1)])[0].allowed()).collect();
        assert_eq!(allowed, [true, false], "{subject:?}");
        let slots: BTreeSet<_> = case
            .store
            .entries()
            .iter()
            .filter(|entry| entry.key.starts_with(subject.slot_prefix()))
            .map(|entry| slot(&entry.key))
            .collect();
        assert_eq!(slots.len(), 1, "{subject:?}");
    }
    // Two limits and the count of denials for each.
    assert_eq!(case.store.entries().len(), 3 * keys.len());
}

fn subjects_spread_over_the_slots(case: &Case) {
    let slots: BTreeSet<_> =
        (0..2_000).map(|user| slot(case.subject("p", &format!("user-{user}")).slot_prefix())).collect();
    // Of 2,000 thrown into 16,384, about 1,885 find a slot of their own.
    assert!(slots.len() > 1_800, "{} slots", slots.len());
}
