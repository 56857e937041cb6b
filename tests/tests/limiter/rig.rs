//! The embedded store under a clock that tests move.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use sluicegate_lua::{
    Answer, Call, Charge, Gift, Give, KeyPrefix, Keys, MAX_FILL_MS, Memory, Policy, Reset, Take, Taken, Unit,
};
use sluicegate_wire::{Cost, Subject};

/// When every rig begins: a time like today's.
pub(crate) const START_MS: u64 = 1_800_000_000_000;

/// A store, its clock, and one subject.
pub(crate) struct Rig {
    pub(crate) memory: Memory,
    clock_ms: Arc<AtomicU64>,
    pub(crate) keys: Keys,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let clock_ms = Arc::new(AtomicU64::new(START_MS));
        let clock = Arc::clone(&clock_ms);
        let memory = Memory::new(move || clock.load(Ordering::Relaxed)).unwrap();
        let keys = KeyPrefix::default().keys(&"p".parse().unwrap(), &Subject::text("s").encode(None));
        Self { memory, clock_ms, keys }
    }

    pub(crate) fn now_ms(&self) -> u64 {
        self.clock_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn pause(&self, ms: u64) {
        self.clock_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(crate) fn step_back(&self, ms: u64) {
        self.clock_ms.fetch_sub(ms, Ordering::Relaxed);
    }

    pub(crate) fn charge(&self, policy: &Arc<Policy>, cost: u64) -> Charge {
        Charge { policy: Arc::clone(policy), keys: self.keys.clone(), cost: Cost::new(cost).unwrap() }
    }

    pub(crate) fn run(&self, call: &Call) -> Vec<i64> {
        self.memory.run(call).unwrap()
    }

    pub(crate) fn take(&self, policy: &Arc<Policy>, takes: u64, cost: u64, enforced: bool) -> (Take, Taken) {
        let unit = Unit { charges: vec![self.charge(policy, cost)], enforced };
        let take = Take { takes, units: vec![unit] };
        let reply = self.run(&take.call(self.now_ms()));
        let Answer::Done(taken) = take.read(&reply).unwrap() else { panic!("the calendar covers now") };
        (take, taken)
    }

    pub(crate) fn give(&self, policy: &Arc<Policy>, tokens: u64, stamps: Vec<u64>) -> Vec<u64> {
        let give = Give { gifts: vec![Gift { charge: self.charge(policy, tokens), stamps }] };
        let reply = self.run(&give.call(self.now_ms()));
        let Answer::Done(given) = give.read(&reply).unwrap() else { panic!("the calendar covers now") };
        given.tokens.concat()
    }

    pub(crate) fn reset(&self, policy: &Policy) -> u64 {
        let reset = Reset { policy, keys: self.keys.clone() };
        Reset::read(&self.run(&reset.call())).unwrap()
    }

    /// Every key of the subject is in its slot, expires, and does so within the longest time.
    pub(crate) fn assert_tidy(&self) {
        let slot = self.keys.slot_prefix();
        for (key, value, ttl_ms) in self.memory.entries() {
            assert!(key.starts_with(slot), "{key} is outside of {slot}");
            // After a step back of the clock a key lives longer by that step.
            assert!((1..=2 * MAX_FILL_MS).contains(&ttl_ms), "{key} lives {ttl_ms} ms: {value}");
        }
    }
}
