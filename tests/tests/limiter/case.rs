//! One case of the suite: a store, the subjects it asks about, and what must hold whatever is asked.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use sluicegate_lua::{
    Answer, Charge, CheckTaken, Gift, Give, Judgement, KeyPrefix, Keys, MAX_FILL_MS, Override, Policy, Reset, Take,
    Taken, Unit,
};
use sluicegate_wire::{Cost, Reason, Subject};

use crate::{
    policies::HOUR_MS,
    slot::slot,
    store::{Entry, Store},
};

/// Runs each case of a module on both stores.
macro_rules! on_both_stores {
    ($($case:ident),+ $(,)?) => {
        mod embedded {
            $(#[test] fn $case() { crate::case::run(crate::store::Store::embedded(), super::$case); })+
        }
        mod real_redis {
            $(#[test] fn $case() { crate::case::run(crate::store::Store::redis(), super::$case); })+
        }
    };
}
pub(crate) use on_both_stores;

/// A store and the subjects that a case asks about.
pub(crate) struct Case {
    pub(crate) store: Store,
    pub(crate) keys: Keys,
    subjects: RefCell<Vec<Keys>>,
}

/// What one take heard.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub(crate) now_ms: u64,
    /// Of each limit of each charge, in order.
    pub(crate) judgements: Vec<Judgement>,
    /// What was found before, for each charge.
    pub(crate) checks: Vec<CheckTaken>,
}

pub(crate) fn run(store: Store, case: impl FnOnce(&Case)) {
    let subject = keys_of("p", "s");
    let bench = Case { store, keys: subject.clone(), subjects: RefCell::new(vec![subject]) };
    case(&bench);
    bench.assert_tidy();
}

fn keys_of(policy: &str, subject: &str) -> Keys {
    KeyPrefix::default().keys(&policy.parse().unwrap(), &Subject::text(subject).encode(None))
}

impl Case {
    /// The keys of another subject, or of another policy.
    pub(crate) fn subject(&self, policy: &str, subject: &str) -> Keys {
        let keys = keys_of(policy, subject);
        self.subjects.borrow_mut().push(keys.clone());
        keys
    }

    pub(crate) fn pass(&self, ms: u64) {
        self.store.pass(ms);
    }

    /// One take for the case's own subject.
    pub(crate) fn take(&self, policy: &Arc<Policy>, cost: u64) -> Heard {
        self.takes(policy, 1, cost).remove(0)
    }

    /// What a look without taking hears.
    pub(crate) fn peek(&self, policy: &Arc<Policy>) -> Heard {
        self.take(policy, 0)
    }

    /// What is left in each limit.
    pub(crate) fn left(&self, policy: &Arc<Policy>) -> Vec<u64> {
        self.peek(policy).left()
    }

    /// Several takes in one call.
    pub(crate) fn takes(&self, policy: &Arc<Policy>, takes: u64, cost: u64) -> Vec<Heard> {
        self.unit(takes, &[(policy, &self.keys, cost)])
    }

    /// Takes of several charges together.
    pub(crate) fn unit(&self, takes: u64, charges: &[(&Arc<Policy>, &Keys, u64)]) -> Vec<Heard> {
        self.ask(&Take { takes, units: vec![unit(charges, true)] }).remove(0)
    }

    /// What each of the takes heard, unit by unit.
    pub(crate) fn ask(&self, take: &Take) -> Vec<Vec<Heard>> {
        let before = self.store.entries();
        let reply = self.store.run(&take.call(self.store.now_ms())).unwrap();
        let Answer::Done(taken) = take.read(&reply).unwrap() else { panic!("the calendar covers now") };
        self.assert_written(take, &taken, &before);
        let heard = |unit: usize, nth| Heard {
            now_ms: taken.units[unit].checks[0].now_ms,
            judgements: taken.judge(take, unit, nth).concat(),
            checks: taken.units[unit].checks.clone(),
        };
        (0..take.units.len()).map(|unit| (1..=take.takes).map(|nth| heard(unit, nth)).collect()).collect()
    }

    /// Gives tokens back: how many each limit got.
    pub(crate) fn give(&self, policy: &Arc<Policy>, tokens: u64, stamps: &[u64]) -> Vec<u64> {
        self.gifts(vec![Gift { charge: charge(policy, &self.keys, tokens), stamps: stamps.to_vec() }]).remove(0)
    }

    /// Several gifts in one call.
    pub(crate) fn gifts(&self, gifts: Vec<Gift>) -> Vec<Vec<u64>> {
        let give = Give { gifts };
        let reply = self.store.run(&give.call(self.store.now_ms())).unwrap();
        let Answer::Done(given) = give.read(&reply).unwrap() else { panic!("the calendar covers now") };
        given.tokens
    }

    /// Lets a key live longer than what it holds has a meaning: as Redis does for up to a ms, and longer where another
    /// policy wrote it.
    pub(crate) fn outlive(&self, key: &str) {
        let entry = self.store.entries().into_iter().find(|entry| entry.key == key).expect("a key");
        self.write(key, &entry.value, HOUR_MS);
    }

    pub(crate) fn reset(&self, policy: &Policy) -> u64 {
        let reset = Reset { policy, keys: self.keys.clone() };
        Reset::read(&self.store.run(&reset.call()).unwrap()).unwrap()
    }

    /// Writes any text into any key: with the call that stores an override.
    pub(crate) fn write(&self, key: &str, value: &str, ttl_ms: u64) {
        let mut call = Override::removal(&self.keys);
        call.keys = vec![key.to_owned()];
        call.args = vec![value.to_owned(), ttl_ms.to_string()];
        self.store.run(&call).unwrap();
    }

    /// Removes any key: the same call with an empty text.
    pub(crate) fn delete(&self, key: &str) {
        self.write(key, "", 1);
    }

    pub(crate) fn limit_key(&self, limit: &str) -> String {
        self.keys.limit(&limit.parse().unwrap())
    }

    /// How long a key lives yet, none when it isn't there.
    pub(crate) fn ttl_ms(&self, key: &str) -> Option<u64> {
        let entries = self.store.entries();
        entries.into_iter().find(|entry| entry.key == key).map(|entry| entry.ttl_ms.expect("a TTL"))
    }

    /// A take wrote what it was granted and not a thing more, to expire when each limit is full again.
    fn assert_written(&self, take: &Take, taken: &Taken, before: &[Entry]) {
        let after = self.store.entries();
        // Redis may reckon a TTL from when the script began, up to a ms before its TIME.
        let early_ms = u64::from(matches!(self.store, Store::Redis(_)));
        let passed_ms = self.store.now_ms() - taken.units[0].checks[0].now_ms + early_ms;
        let (mut may_change, mut may_renew, mut full_ms) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (index, (asked, got)) in take.units.iter().zip(&taken.units).enumerate() {
            let last = taken.judge(take, index, got.granted.max(1));
            for (charge, judged) in asked.charges.iter().zip(&last) {
                may_renew.push(charge.keys.overrides());
                if asked.enforced && charge.cost.tokens() > 0 && got.granted < take.takes {
                    may_change.push(charge.keys.ban());
                }
                if got.granted > 0 && charge.cost.tokens() > 0 {
                    let limits = charge.policy.limits().iter().zip(judged);
                    full_ms.extend(limits.map(|(limit, judged)| (charge.keys.limit(&limit.name), judged.full_ms)));
                }
            }
        }
        for (key, full_ms) in full_ms {
            let ttl_ms = after.iter().find(|entry| entry.key == key).map_or(0, |entry| entry.ttl_ms.unwrap_or(0));
            let expected = full_ms.max(1).saturating_sub(passed_ms)..=full_ms.max(1);
            assert!(expected.contains(&ttl_ms), "{key} lives {ttl_ms} ms, not {expected:?}");
            may_change.push(key);
        }
        for entry in after.iter().filter(|entry| !may_change.contains(&entry.key)) {
            let renewed = may_renew.contains(&entry.key);
            let lives = |old: &Entry| old.ttl_ms >= entry.ttl_ms || renewed;
            let kept = |old: &&Entry| old.key == entry.key && old.value == entry.value && lives(old);
            assert!(before.iter().any(|old| kept(&old)), "{entry:?} was written by {take:?}");
        }
    }

    /// Every key expires, within the longest time, and is in the slot of a subject that was asked about.
    fn assert_tidy(&self) {
        for entry in self.store.entries() {
            let ttl_ms = entry.ttl_ms.unwrap_or_else(|| panic!("{entry:?} never expires"));
            assert!((0..=MAX_FILL_MS).contains(&ttl_ms), "{entry:?}");
            let of = |keys: &&Keys| entry.key.strip_prefix(keys.slot_prefix()).is_some_and(|rest| !rest.is_empty());
            let subjects = self.subjects.borrow();
            let subject = subjects.iter().find(of).unwrap_or_else(|| panic!("{entry:?} is nobody's"));
            assert_eq!(slot(&entry.key), slot(subject.slot_prefix()), "{entry:?}");
        }
    }
}

pub(crate) fn charge(policy: &Arc<Policy>, keys: &Keys, cost: u64) -> Charge {
    Charge { policy: Arc::clone(policy), keys: keys.clone(), cost: Cost::new(cost).unwrap() }
}

/// A unit of charges; a shadow check's denials don't count towards a ban.
pub(crate) fn unit(charges: &[(&Arc<Policy>, &Keys, u64)], enforced: bool) -> Unit {
    let charges = charges.iter().map(|(policy, keys, cost)| charge(policy, keys, *cost)).collect();
    Unit { charges, enforced }
}

impl Heard {
    pub(crate) fn allowed(&self) -> bool {
        self.judgements.iter().all(Judgement::allowed)
    }

    pub(crate) fn left(&self) -> Vec<u64> {
        self.judgements.iter().map(|judgement| judgement.remaining).collect()
    }

    pub(crate) fn reasons(&self) -> Vec<Reason> {
        self.judgements.iter().map(|judgement| judgement.reason).collect()
    }

    /// The waits of the limits, in order.
    pub(crate) fn waits_ms(&self) -> Vec<Option<u64>> {
        self.judgements.iter().map(|judgement| judgement.retry_after_ms).collect()
    }

    /// The limit that denied with the longest wait, and that wait.
    pub(crate) fn longest_wait(&self) -> (usize, u64) {
        let waits = self.judgements.iter().enumerate().filter(|(_, judgement)| !judgement.allowed());
        let waits = waits.map(|(index, judgement)| (index, judgement.retry_after_ms.expect("not never")));
        waits.max_by_key(|(_, wait_ms)| *wait_ms).expect("a denial")
    }
}
