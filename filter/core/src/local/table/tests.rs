use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use sluicegate_wire::Subject;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;
use crate::shared::{Cas, SetError, Stored, Unreadable};

/// Shared data; before a write, takes of other workers may come between.
#[derive(Default)]
struct Memory {
    values: RefCell<BTreeMap<String, Stored>>,
    writes: Cell<u32>,
    /// What others take between a read and the write that follows, last first.
    races: RefCell<Vec<Race>>,
    granted: RefCell<BTreeMap<&'static str, u64>>,
    always_mismatch: bool,
}

/// One take.
#[derive(Clone, Copy, Debug)]
struct Race {
    limit: LocalLimit,
    who: &'static str,
    cost: u64,
    now_ms: u64,
}

impl Memory {
    fn race(&self) -> bool {
        let race = self.races.borrow_mut().pop();
        race.map(|race| self.take(race)).is_some()
    }

    fn take(&self, race: Race) {
        if take_one(&race.limit, race.who, race.cost, race.now_ms, self) == GRANTED {
            *self.granted.borrow_mut().entry(race.who).or_default() += race.cost;
        }
    }
}

impl SharedData for Memory {
    fn get(&self, key: &str) -> Result<Option<Stored>, Unreadable> {
        Ok(self.values.borrow().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8], seen: Option<Cas>) -> Result<(), SetError> {
        self.race();
        let now = self.values.borrow().get(key).map(|stored| stored.cas);
        if now != seen || self.always_mismatch {
            return Err(SetError::Mismatch);
        }
        self.writes.set(self.writes.get() + 1);
        let stored = Stored { value: value.to_vec(), cas: Cas(self.writes.get()) };
        self.values.borrow_mut().insert(key.to_owned(), stored);
        Ok(())
    }
}

fn limit(capacity: u64, refill: u64, per_ms: u64, slots: u32) -> LocalLimit {
    LocalLimit::new(capacity, refill, per_ms, slots).unwrap()
}

fn subject(text: &str) -> EncodedSubject {
    Subject::text(text).encode(None)
}

fn take_one(limit: &LocalLimit, who: &str, cost: u64, now_ms: u64, shared: &dyn SharedData) -> Taken {
    Takes::new(Surroundings { now_ms, shared }).take(limit, &"rule".parse().unwrap(), vec![(subject(who), cost)])
}

const GRANTED: Taken = Taken::Granted { overflow: false };

#[test]
fn each_subject_has_its_capacity_and_then_its_refill() {
    let (limit, memory) = (limit(3, 1, 1000, 4096), Memory::default());
    for who in ["alice", "bob"] {
        for _ in 0..3 {
            assert_eq!(take_one(&limit, who, 1, 5_000, &memory), GRANTED);
        }
        let denied = Taken::Denied { wait_ms: Some(1000), overflow: false };
        assert_eq!(take_one(&limit, who, 1, 5_000, &memory), denied);
    }
    assert_eq!(take_one(&limit, "alice", 1, 6_000, &memory), GRANTED);
    assert_eq!(take_one(&limit, "alice", 4, 6_000, &memory), Taken::Denied { wait_ms: None, overflow: false });
    assert_eq!(take_one(&limit, "alice", 0, 6_000, &memory), GRANTED);
}

#[test]
fn a_slot_is_free_again_when_its_bucket_is_full_and_not_before() {
    let (limit, memory) = (limit(2, 2, 1000, 32), Memory::default());
    for index in 0..31 {
        assert_eq!(take_one(&limit, &format!("u{index}"), 1, 0, &memory), GRANTED);
    }
    let late = |now_ms| take_one(&limit, "late", 1, now_ms, &memory);
    assert_eq!([late(0), late(499)], [Taken::Granted { overflow: true }; 2]);
    assert!(matches!(take_one(&limit, "later", 1, 499, &memory), Taken::Denied { overflow: true, .. }));
    assert_eq!(take_one(&limit, "u0", 1, 499, &memory), GRANTED);
    assert_eq!([late(500), late(500)], [GRANTED; 2]);
    assert_eq!(memory.values.borrow().len(), 1, "one value a set");
}

#[test]
fn what_is_admitted_never_exceeds_what_the_slots_hold() {
    let (limit, memory) = (limit(3, 1, 1_000_000, 64), Memory::default());
    let granted = (0..2000)
        .filter(|index| matches!(take_one(&limit, &format!("u{}", index % 500), 1, 0, &memory), Taken::Granted { .. }));
    assert!(granted.count() <= 64 * 3);
    assert_eq!(memory.values.borrow().len(), 2);
}

#[test]
fn several_subjects_give_or_none_does() {
    let (limit, memory) = (limit(2, 1, 1_000_000, 4096), Memory::default());
    let rule = "rule".parse().unwrap();
    let around = Surroundings { now_ms: 0, shared: &memory };
    let both = |second: &str| Takes::new(around).take(&limit, &rule, vec![(subject("ip"), 1), (subject(second), 1)]);
    assert_eq!(take_one(&limit, "bob", 2, 0, &memory), GRANTED);
    for _ in 0..10 {
        assert!(matches!(both("bob"), Taken::Denied { .. }));
    }
    assert_eq!([both("carol"), both("dave")], [GRANTED; 2]);
    assert!(matches!(both("erin"), Taken::Denied { .. }));
}

#[test]
fn a_changed_limit_keeps_the_tokens() {
    let memory = Memory::default();
    assert_eq!(take_one(&limit(10, 1, 1000, 4096), "u", 4, 0, &memory), GRANTED);
    let tighter = limit(5, 1, 60_000, 4096);
    assert_eq!(take_one(&tighter, "u", 5, 0, &memory), GRANTED, "6 tokens become 5, which is full");
    assert!(matches!(take_one(&tighter, "u", 1, 0, &memory), Taken::Denied { .. }));
}

#[test]
fn a_table_that_can_not_be_written_grants_nothing() {
    let memory = Memory { always_mismatch: true, ..Memory::default() };
    assert_eq!(take_one(&limit(5, 1, 1000, 4096), "u", 1, 0, &memory), Taken::Unusable);
}

#[test]
fn foreign_bytes_are_nobodys_buckets() {
    for value in [&b"\x05ab"[..], b"\xff\x00", &[0; 24], b"x"] {
        assert!(decode(value).is_none(), "{value:?}");
    }
    assert_eq!(decode(b"").map(|entries| entries.len()), Some(0));
}

#[cfg(not(target_arch = "wasm32"))]
mod races {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    proptest! {
        /// Takes of several workers, each between another's read and write: as if they had come one after another.
        #[test]
        fn no_interleaving_admits_more_or_less(
            takes in vec((prop::sample::select(vec!["a", "b", "c"]), 1_u64..3, 0_u64..40), 1..60), together in 1_usize..5,
        ) {
            let (limit, memory) = (limit(5, 1, 20, 32), Memory::default());
            let mut now_ms = 1_000;
            for chunk in takes.chunks(together) {
                now_ms += chunk[0].2;
                let mut chunk = chunk.iter().map(|&(who, cost, _)| Race { limit, who, cost, now_ms });
                let first = chunk.next().unwrap();
                memory.races.borrow_mut().extend(chunk);
                memory.take(first);
                // Where the take wrote nothing nobody could come between.
                while memory.race() {}
            }
            for who in ["a", "b", "c"] {
                let granted = memory.granted.borrow().get(who).copied().unwrap_or(0);
                let asked: u64 = takes.iter().filter(|take| take.0 == who).map(|take| take.1).sum();
                let most = 5 + (now_ms - 1_000) / 20;
                prop_assert!(granted <= most, "{who}: {granted} of {most}");
                prop_assert!(granted >= asked.min(4), "{who}: {granted} of {asked} asked");
            }
        }

        #[test]
        fn any_bytes_are_read_or_not(bytes in vec(any::<u8>(), 0..200)) {
            if let Some(entries) = decode(&bytes) {
                prop_assert_eq!(encode(&entries), bytes);
            }
        }
    }
}
