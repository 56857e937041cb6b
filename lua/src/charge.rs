//! One policy's limits for one subject, as the scripts take them.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use sluicegate_wire::Cost;

use crate::{Call, Keys, Policy, Rule};

/// A policy asked about a subject, and what to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The keys of policy and subject.
    pub keys: Keys,
    /// The tokens to take from each of its limits.
    pub cost: Cost,
}

/// By keys and cost, which almost always tell two charges apart; equal charges have equal hashes all the same.
impl Hash for Charge {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.keys.hash(state);
        self.cost.hash(state);
    }
}

impl Charge {
    /// Adds the check to a call, as `lua/parts/check.lua` reads it.
    pub(crate) fn add_to(&self, call: &mut Call, now_ms: u64, coverage: &mut Coverage) {
        if self.policy.overrides() {
            call.number(1);
            call.keys.push(self.keys.overrides());
        } else {
            call.number(0);
        }
        match self.policy.ban() {
            Some(ban) => {
                for number in [ban.after(), ban.within_ms(), ban.for_ms()] {
                    call.number(number);
                }
                call.keys.push(self.keys.ban());
            }
            None => (0..3).for_each(|_| call.number(0)),
        }
        call.number(self.policy.limits().len() as u64);
        for limit in self.policy.limits() {
            call.keys.push(self.keys.limit(&limit.name));
            match &limit.rule {
                Rule::Bucket(bucket) => {
                    call.word(bucket.mode().letter());
                    for number in [bucket.capacity(), bucket.refill(), bucket.per_ms()] {
                        call.number(number);
                    }
                }
                Rule::Quota(quota) => {
                    call.word("q");
                    call.number(quota.quota());
                    let boundaries = quota.boundaries(now_ms).unwrap_or_default();
                    coverage.narrow(boundaries[0], boundaries[4]);
                    call.number(boundaries.len() as u64);
                    for boundary in boundaries {
                        call.number(boundary);
                    }
                }
            }
        }
    }
}

/// The time that the boundaries of all quotas in a call cover, in ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Coverage {
    pub(crate) from_ms: u64,
    pub(crate) until_ms: u64,
}

impl Coverage {
    /// All times.
    pub(crate) const ALL: Self = Self { from_ms: 0, until_ms: 1 << 53 };

    fn narrow(&mut self, from_ms: u64, until_ms: u64) {
        self.from_ms = self.from_ms.max(from_ms);
        self.until_ms = self.until_ms.min(until_ms);
    }
}
