//! The buckets of one rule, in a table of slots that the proxy's workers share.
//!
//! Slots come in sets of 32, and one shared value is a whole set, so that every take is one compare-and-swap over all
//! that it depends on. A subject belongs to the set that its hash names. Of a set's slots 31 are for one subject each;
//! the last is the overflow bucket, for all subjects that find no slot free. Only a bucket that isn't full is stored,
//! so a slot is free again exactly when its bucket is full: reusing it loses nothing, and what is admitted never
//! exceeds what all slots hold. A changed limit keeps the tokens, as in the store.

use sluicegate_wire::{EncodedSubject, Name};

use super::bucket::{Bucket, LocalLimit};
use crate::{
    shared::{SharedData, change, hash, read_numbers, write_numbers},
    worker::Surroundings,
};

/// Slots of one set.
const WAYS: u32 = 32;
/// Those of one subject each.
const OWN_WAYS: usize = 31;
/// What came of a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// The tokens were there.
    Granted {
        /// Of the overflow bucket, which the subject shares.
        overflow: bool,
    },
    /// They were not; the wait in ms, none when it is for ever.
    Denied {
        /// The time until they are.
        wait_ms: Option<u64>,
        /// In the overflow bucket, which the subject shares.
        overflow: bool,
    },
    /// The table could not be read or written.
    Unusable,
}

impl Taken {
    /// Whether the overflow bucket decided.
    pub(crate) const fn overflow(self) -> bool {
        matches!(self, Self::Granted { overflow: true } | Self::Denied { overflow: true, .. })
    }
}

/// What one request takes from the buckets of its rules: all of it, or nothing.
pub(crate) struct Takes<'a> {
    around: Surroundings<'a>,
    granted: Vec<Granted<'a>>,
}

struct Granted<'a> {
    set: Set<'a>,
    /// None when the overflow bucket granted it.
    subject: Option<EncodedSubject>,
    cost: u64,
}

impl<'a> Takes<'a> {
    pub(crate) const fn new(around: Surroundings<'a>) -> Self {
        Self { around, granted: Vec::new() }
    }

    /// Takes tokens from the bucket of each of these subjects of a rule. When one has too few, all that was taken is
    /// given back, of rules before it too, as far as it can be: what isn't comes back by itself.
    pub(crate) fn take(&mut self, limit: &'a LocalLimit, rule: &Name, costs: Vec<(EncodedSubject, u64)>) -> Taken {
        let Surroundings { now_ms, shared } = self.around;
        let mut overflows = false;
        for (subject, cost) in costs {
            let set = Set { limit, key: key(limit, rule, &subject), shared };
            match set.take(subject.as_str(), cost, now_ms) {
                Taken::Granted { overflow } => {
                    overflows |= overflow;
                    self.granted.push(Granted { set, subject: (!overflow).then_some(subject), cost });
                }
                denied => {
                    self.give_back();
                    return denied;
                }
            }
        }
        Taken::Granted { overflow: overflows }
    }

    fn give_back(&mut self) {
        for Granted { set, subject, cost } in self.granted.drain(..) {
            set.give(subject.as_ref().map(EncodedSubject::as_str), cost, self.around.now_ms);
        }
    }
}

/// The layout, the rule and the size of its table are part of the key: other values are never read as this table's. Who
/// picks subjects to meet in one set gains nothing over who fills the whole table: the overflow bucket is what others then
/// share.
fn key(limit: &LocalLimit, rule: &Name, subject: &EncodedSubject) -> String {
    let sets = u64::from(limit.slots().checked_div(WAYS).unwrap_or(1).max(1));
    let set = hash(subject.as_str().as_bytes()).checked_rem(sets).unwrap_or(0);
    format!("local.1.{rule}.{sets}.{set}")
}

struct Set<'a> {
    limit: &'a LocalLimit,
    key: String,
    shared: &'a dyn SharedData,
}

/// A stored bucket and whose it is; without a subject the overflow bucket.
struct Entry {
    subject: Option<Vec<u8>>,
    bucket: Bucket,
}

impl Set<'_> {
    fn take(&self, subject: &str, cost: u64, now_ms: u64) -> Taken {
        self.change(now_ms, |entries| {
            let own = entries.iter().any(|entry| entry.subject.as_deref() == Some(subject.as_bytes()));
            let overflow = !own && entries.iter().filter(|entry| entry.subject.is_some()).count() >= OWN_WAYS;
            let whose = (!overflow).then_some(subject.as_bytes());
            let position = entries.iter().position(|entry| entry.subject.as_deref() == whose);
            let mut bucket = match position.and_then(|position| entries.get(position)) {
                Some(entry) => entry.bucket,
                None => self.limit.full(now_ms),
            };
            let Some(tokens) = bucket.tokens.checked_sub(cost) else {
                let wait_ms = self.limit.wait_ms(&bucket, cost, now_ms);
                return (Taken::Denied { wait_ms, overflow }, false);
            };
            bucket.tokens = tokens;
            match position.and_then(|position| entries.get_mut(position)) {
                Some(entry) => entry.bucket = bucket,
                None => entries.push(Entry { subject: whose.map(<[u8]>::to_vec), bucket }),
            }
            (Taken::Granted { overflow }, cost > 0)
        })
    }

    /// Gives back what was just taken from a subject's bucket, or without a subject from the overflow bucket. One that is
    /// not there is full.
    fn give(&self, subject: Option<&str>, cost: u64, now_ms: u64) {
        self.change(now_ms, |entries| {
            let whose = subject.map(str::as_bytes);
            let given = entries.iter_mut().find(|entry| entry.subject.as_deref() == whose).map(|entry| {
                entry.bucket.tokens = entry.bucket.tokens.saturating_add(cost).min(self.limit.capacity());
            });
            (Taken::Granted { overflow: false }, given.is_some())
        });
    }

    /// Lets `step` change the set as it is now, and says what came of that; `step` says whether it changed anything.
    fn change(&self, now_ms: u64, step: impl Fn(&mut Vec<Entry>) -> (Taken, bool)) -> Taken {
        let mut taken = Taken::Unusable;
        let usable = change(self.shared, &self.key, &mut |stored| {
            // Only a foreign writer makes bytes that are no set; they are then nobody's buckets.
            let mut entries = stored.and_then(|stored| decode(&stored)).unwrap_or_default();
            for entry in &mut entries {
                entry.bucket = self.limit.refilled(entry.bucket, now_ms);
            }
            entries.retain(|entry| !self.limit.is_full(&entry.bucket));
            let changed;
            (taken, changed) = step(&mut entries);
            entries.retain(|entry| !self.limit.is_full(&entry.bucket));
            changed.then(|| encode(&entries))
        });
        if usable { taken } else { Taken::Unusable }
    }
}

/// The length byte of the overflow bucket; an encoded subject has at most 128 bytes.
const OVERFLOW: u8 = u8::MAX;

/// For each bucket the length of its subject in one byte, the subject, and three numbers, u64 little-endian.
fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Entry { subject, bucket: Bucket { tokens, last_ms, part } } in entries {
        let length = subject.as_ref().map_or(OVERFLOW, |subject| u8::try_from(subject.len()).unwrap_or(OVERFLOW));
        bytes.push(length);
        bytes.extend_from_slice(subject.as_deref().unwrap_or_default());
        write_numbers(&mut bytes, &[*tokens, *last_ms, *part]);
    }
    bytes
}

fn decode(mut bytes: &[u8]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (subject, rest) = match length {
            OVERFLOW => (None, rest),
            length => {
                let (subject, rest) = rest.split_at_checked(length.into())?;
                (Some(subject.to_vec()), rest)
            }
        };
        bytes = rest;
        let [tokens, last_ms, part] = read_numbers(&mut bytes)?;
        let bucket = Bucket { tokens, last_ms, part };
        entries.push(Entry { subject, bucket });
    }
    Some(entries)
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "a test may panic")]
mod tests;
