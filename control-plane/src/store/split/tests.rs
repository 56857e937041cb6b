//! Takes over slots, joined from answers that the test makes up.

use std::sync::Arc;

use sluicegate_lua::{Bucket, KeyPrefix, Limit, Policy, Refill};
use sluicegate_wire::Subject;

use super::*;

/// A charge of `cost` on a policy of one bucket; each subject is in a slot of its own.
fn charge(subject: &str, cost: u64) -> Charge {
    let bucket = Bucket::new(10, 10, 1_000, Refill::Greedy).unwrap();
    let limits = vec![Limit { name: "burst".parse().unwrap(), rule: bucket.into() }];
    let policy = Policy::new("api".parse().unwrap(), limits).unwrap();
    let keys = KeyPrefix::default().keys(policy.name(), &Subject::text(subject).encode(None));
    Charge { policy: Arc::new(policy), keys, cost: Cost::new(cost).unwrap() }
}

/// What a slot answers that had `tokens` in each bucket.
fn answer(part: &Part, tokens: u64) -> Taken {
    let unit = |unit: &Unit| {
        let cost = unit.charges.iter().map(|charge| charge.cost.tokens()).max().unwrap();
        let check = |_: &Charge| {
            let bucket = Bucket::new(10, 10, 1_000, Refill::Greedy).unwrap();
            let levels = vec![Level::Bucket { bucket, tokens, last_ms: 7, part: 0 }];
            CheckTaken { now_ms: 7, overridden: false, ban_left_ms: 0, denials: 0, levels }
        };
        UnitTaken {
            granted: part.take.takes.min(tokens.checked_div(cost).unwrap_or(u64::MAX)),
            checks: unit.charges.iter().map(check).collect(),
        }
    };
    Taken { takes: part.take.takes, units: part.take.units.iter().map(unit).collect() }
}

/// Joins answers of slots with these tokens, by subject; none where the slot fails.
fn join(take: &Take, tokens: &dyn Fn(&str) -> Option<u64>) -> Joined {
    let split = Split::of(take);
    let answers = split.parts().iter().map(|part| {
        let tag = part.take.units[0].charges[0].keys.hash_tag().to_owned();
        tokens(tag.strip_prefix("api:").unwrap()).map(|tokens| answer(part, tokens)).ok_or(StoreError::Timeout)
    });
    split.join(answers.collect())
}

/// What is given back, by subject.
fn given_back(joined: &Joined) -> Vec<(String, u64)> {
    let gifts = joined.give_back.iter().flat_map(|(slot, give)| {
        give.gifts.iter().map(|gift| {
            assert_eq!(Slot::of(&gift.charge.keys), *slot);
            (gift.charge.keys.hash_tag().to_owned(), gift.charge.cost.tokens())
        })
    });
    let mut gifts: Vec<_> = gifts.collect();
    gifts.sort();
    gifts
}

fn enforced(charges: &[Charge]) -> Unit {
    Unit { charges: charges.to_vec(), enforced: true }
}

#[test]
fn each_slot_gets_what_is_in_it() {
    let shadow = Unit { charges: vec![charge("a", 3)], enforced: false };
    let take = Take { takes: 2, units: vec![enforced(&[charge("a", 1), charge("b", 2)]), shadow] };
    let split = Split::of(&take);
    let mut parts: Vec<_> = split.parts().iter().map(|part| part.take.clone()).collect();
    parts.sort_by_key(|part| part.units.len());
    assert_eq!(parts[0], Take { takes: 2, units: vec![enforced(&[charge("b", 2)])] });
    let shadow = Unit { charges: vec![charge("a", 3)], enforced: false };
    assert_eq!(parts[1], Take { takes: 2, units: vec![enforced(&[charge("a", 1)]), shadow] });
}

#[test]
fn all_granted_is_granted() {
    let take = Take { takes: 1, units: vec![enforced(&[charge("a", 1), charge("b", 2)])] };
    let joined = join(&take, &|_| Some(5));
    let taken = joined.taken.as_ref().unwrap();
    assert_eq!((taken.units[0].granted, taken.units[0].checks.len()), (1, 2));
    assert_eq!(given_back(&joined), []);
}

#[test]
fn what_one_slot_denies_the_others_get_back() {
    let take = Take { takes: 1, units: vec![enforced(&[charge("a", 1), charge("b", 2), charge("c", 3)])] };
    let joined = join(&take, &|subject| Some(if subject == "b" { 1 } else { 5 }));
    let taken = joined.taken.as_ref().unwrap();
    assert_eq!(taken.units[0].granted, 0);
    let allowed: Vec<_> = taken.judge(&take, 0, 1).concat().iter().map(|judged| judged.allowed()).collect();
    assert_eq!(allowed, [true, false, true]);
    assert_eq!(given_back(&joined), [("api:a".to_owned(), 1), ("api:c".to_owned(), 3)]);
}

/// Of 4 takes `a` grants 4 and `b` 2: two are granted, and what `a` took for the others comes back.
#[test]
fn joined_takes_give_back_the_surplus() {
    let take = Take { takes: 4, units: vec![enforced(&[charge("a", 1), charge("b", 2)])] };
    let joined = join(&take, &|_| Some(5));
    assert_eq!(joined.taken.as_ref().unwrap().units[0].granted, 2);
    assert_eq!(given_back(&joined), [("api:a".to_owned(), 2)]);
}

#[test]
fn a_slot_that_fails_fails_the_take_and_the_others_get_back() {
    let take = Take { takes: 1, units: vec![enforced(&[charge("a", 1), charge("b", 2)])] };
    let joined = join(&take, &|subject| (subject == "a").then_some(5));
    assert_eq!(joined.taken.as_ref().unwrap_err(), &StoreError::Timeout);
    assert_eq!(given_back(&joined), [("api:a".to_owned(), 1)]);
}

#[test]
fn a_shadow_slot_that_fails_changes_nothing_for_the_others() {
    let shadow = Unit { charges: vec![charge("b", 1)], enforced: false };
    let take = Take { takes: 1, units: vec![enforced(&[charge("a", 1)]), shadow] };
    let joined = join(&take, &|subject| (subject == "a").then_some(5));
    let taken = joined.taken.as_ref().unwrap();
    assert_eq!((taken.units[0].granted, taken.units[1].granted, taken.units[1].checks.len()), (1, 0, 0));
    assert_eq!(given_back(&joined), []);
}

#[test]
fn looking_takes_nothing_back() {
    let take = Take { takes: 1, units: vec![enforced(&[charge("a", 0), charge("b", 9)])] };
    let joined = join(&take, &|subject| Some(if subject == "b" { 1 } else { 5 }));
    assert_eq!(given_back(&joined), []);
}

#[test]
fn gifts_go_to_their_slots_and_keep_their_places() {
    let gift = |subject: &str| Gift { charge: charge(subject, 1), stamps: Vec::new() };
    let give = Give { gifts: vec![gift("a"), gift("b"), gift("a")] };
    let mut parts = split_give(&give);
    parts.sort_by_key(|(_, _, places)| places.len());
    assert_eq!(parts[0].2, [1]);
    assert_eq!(parts[1].2, [0, 2]);
    assert_eq!(parts[1].1.gifts.len(), 2);
}
