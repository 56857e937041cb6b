//! From a check to a take, and from what was taken to an answer.

use std::sync::Arc;

use sluicegate_lua::{Charge, KeyPrefix, Policy, Take, Taken, Unit, bucket_key};
use sluicegate_wire::{CheckAnswer, CheckRequest, Cost, EncodedSubject, LimitResult, Name, Reason};
use tokio::time::Instant;

use crate::{
    config::Policies,
    store::{Store, StoreError},
};

/// How long a proxy may keep a denial that no wait ends, in ms: a changed policy gets through after that.
const NEVER_CACHE_MS: u64 = 60_000;

/// Decides checks.
#[derive(Clone, Debug)]
pub struct Limiter {
    policies: Policies,
    prefix: KeyPrefix,
    store: Store,
}

/// Why a check got no decision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// No policy of that name.
    #[error("checks[{check}].policy: there is no policy {policy:?}")]
    UnknownPolicy {
        /// The index of the check.
        check: usize,
        /// The name asked for, or the beginning of one that is too long to be a name.
        policy: String,
    },
    /// The store did not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Limiter {
    /// A limiter over these policies, whose keys begin with `prefix`.
    #[must_use]
    pub const fn new(policies: Policies, prefix: KeyPrefix, store: Store) -> Self {
        Self { policies, prefix, store }
    }

    /// Takes for all enforced checks or for none, and for each shadow check on its own, before `deadline`.
    pub async fn check(&self, request: &CheckRequest, deadline: Instant) -> Result<CheckAnswer, CheckError> {
        let plan = Plan::new(request, &self.policies)?;
        let taken = self.store.take(&plan.take(&self.prefix), deadline).await?;
        Ok(plan.answer(&taken))
    }

    /// Whether checks can be decided, or why not.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.store.ready()
    }
}

/// The distinct (policy, subject) pairs of a request, and which check became which of them.
struct Plan {
    /// Enforced pairs first: they make the first unit; each shadow pair is a unit of its own.
    pairs: Vec<Pair>,
    /// For each check, its pair.
    pair_of: Vec<usize>,
}

struct Pair {
    policy: Arc<Policy>,
    subject: EncodedSubject,
    shadow: bool,
    cost: Cost,
}

impl Plan {
    /// Checks with the same policy, key and shadow are one, with the sum of their costs.
    fn new(request: &CheckRequest, policies: &Policies) -> Result<Self, CheckError> {
        let mut pairs: Vec<Pair> = Vec::with_capacity(request.checks.len());
        let mut pair_of = vec![0; request.checks.len()];
        for shadow in [false, true] {
            for (index, check) in request.checks.iter().enumerate().filter(|(_, check)| check.shadow == shadow) {
                let policy = policies
                    .get(&check.policy)
                    .ok_or_else(|| CheckError::UnknownPolicy { check: index, policy: beginning(&check.policy) })?;
                let subject = check.key.encode();
                let same = |pair: &Pair| {
                    pair.shadow == shadow && pair.policy.name() == policy.name() && pair.subject == subject
                };
                pair_of[index] = match pairs.iter().position(same) {
                    Some(known) => {
                        pairs[known].cost = pairs[known].cost.saturating_add(check.cost);
                        known
                    }
                    None => {
                        pairs.push(Pair { policy: Arc::clone(policy), subject, shadow, cost: check.cost });
                        pairs.len() - 1
                    }
                };
            }
        }
        Ok(Self { pairs, pair_of })
    }

    fn take(&self, prefix: &KeyPrefix) -> Take {
        let mut units = vec![Unit::default()];
        for pair in &self.pairs {
            let charges = pair.policy.limits().iter().map(|limit| Charge {
                key: bucket_key(prefix, pair.policy.name(), &pair.subject, &limit.name),
                bucket: limit.bucket,
                cost: pair.cost,
            });
            if pair.shadow {
                units.push(Unit { charges: charges.collect() });
            } else {
                units[0].charges.extend(charges);
            }
        }
        Take { takes: 1, units }
    }

    fn answer(&self, taken: &Taken) -> CheckAnswer {
        let of_pair = self.results_of_pairs(taken);
        let results: Vec<LimitResult> = self
            .pair_of
            .iter()
            .enumerate()
            .flat_map(|(check, &pair)| of_pair[pair].iter().map(move |result| LimitResult { check, ..result.clone() }))
            .collect();
        let denied = || results.iter().filter(|result| !result.shadow && !result.allowed);
        let longest_ms = denied().map(|result| result.retry_after_ms.unwrap_or(NEVER_CACHE_MS)).max();
        CheckAnswer { allowed: longest_ms.is_none(), deny_cache_ms: longest_ms, results }
    }

    fn results_of_pairs(&self, taken: &Taken) -> Vec<Vec<LimitResult>> {
        let mut levels = taken.units.iter().flat_map(|unit| unit.levels.iter().map(|level| (unit.granted, level)));
        self.pairs
            .iter()
            .map(|pair| {
                let limits = pair.policy.limits().iter().zip(levels.by_ref());
                limits
                    .map(|(limit, (granted, level))| {
                        let judged = level.judge(&limit.bucket, taken.now_ms, pair.cost, granted, 1);
                        LimitResult {
                            check: 0,
                            policy: pair.policy.name().to_string(),
                            limit: limit.name.to_string(),
                            allowed: judged.allowed,
                            reason: match (judged.allowed, judged.retry_after_ms) {
                                (true, _) => Reason::Ok,
                                (false, Some(_)) => Reason::OverLimit,
                                (false, None) => Reason::Never,
                            },
                            capacity: limit.bucket.capacity(),
                            window_ms: limit.bucket.fill_ms(),
                            remaining: judged.remaining,
                            retry_after_ms: judged.retry_after_ms,
                            next_ms: judged.next_ms,
                            full_ms: judged.full_ms,
                            shadow: pair.shadow,
                        }
                    })
                    .collect()
            })
            .collect()
    }
}

fn beginning(name: &str) -> String {
    name.chars().take(Name::MAX_BYTES).collect()
}
