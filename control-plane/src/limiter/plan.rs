//! One call's checks as charges, and its answer.

use std::{sync::Arc, time::Duration};

use sluicegate_lua::{Charge, CheckTaken, Judgement, Limit, Rule, Take, Unit};
use sluicegate_wire::{Check, CheckAnswer, LimitResult, Name};

use super::{CheckError, Limiter, charge};
use crate::{metrics::PolicyCounts, store::Share, top::Outcome};

/// How long a proxy may keep a denial that no wait ends, in ms: a changed policy gets through after that.
const NEVER_CACHE_MS: u64 = 60_000;

/// The distinct charges of a call, and which check became which of them.
pub(super) struct Plan {
    /// Enforced ones first: they make the first unit; each shadow one is a unit of its own.
    pairs: Vec<Pair>,
    /// For each check, its pair.
    pair_of: Vec<usize>,
}

struct Pair {
    charge: Charge,
    shadow: bool,
    counts: Arc<PolicyCounts>,
}

/// Where a pair is in the take: its unit, and which of its charges.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) unit: usize,
    pub(super) charge: usize,
}

impl Plan {
    /// Checks with the same policy, key and shadow are one, with the sum of their costs.
    pub(super) fn new(checks: &[Check], limiter: &Limiter) -> Result<Self, CheckError> {
        // Once for all checks, so that none of them is by another set.
        let policies = limiter.policies.current();
        let mut pairs: Vec<Pair> = Vec::with_capacity(checks.len());
        let mut pair_of = vec![0; checks.len()];
        for shadow in [false, true] {
            for (index, check) in checks.iter().enumerate().filter(|(_, check)| check.shadow == shadow) {
                let policy = policies
                    .get(&check.policy)
                    .ok_or_else(|| CheckError::UnknownPolicy { check: index, policy: beginning(&check.policy) })?;
                let keys = limiter.prefix.keys(policy.name(), &check.key.encode(limiter.pepper.as_ref()));
                let same = |pair: &Pair| pair.shadow == shadow && pair.charge.keys == keys;
                pair_of[index] = match pairs.iter().position(same) {
                    Some(known) => {
                        pairs[known].charge.cost = pairs[known].charge.cost.saturating_add(check.cost);
                        known
                    }
                    None => {
                        let charge = Charge { policy: Arc::clone(policy), keys, cost: check.cost };
                        pairs.push(Pair { charge, shadow, counts: limiter.decisions.of(policy) });
                        pairs.len() - 1
                    }
                };
            }
        }
        Ok(Self { pairs, pair_of })
    }

    /// The distinct charges.
    pub(super) fn charges(&self) -> impl Iterator<Item = &Charge> {
        self.pairs.iter().map(|pair| &pair.charge)
    }

    /// Whether a refund must know more than the checks: which window a quota was charged in, and whether a shadow check
    /// was charged at all.
    pub(super) fn needs_charge(&self) -> bool {
        let is_quota = |limit: &Limit| matches!(limit.rule, Rule::Quota(_));
        self.pairs.iter().any(|pair| pair.shadow || pair.charge.policy.limits().iter().any(is_quota))
    }

    pub(super) fn take(&self) -> Take {
        let mut units = vec![Unit { charges: Vec::new(), enforced: true }];
        for pair in &self.pairs {
            if pair.shadow {
                units.push(Unit { charges: vec![pair.charge.clone()], enforced: false });
            } else {
                units[0].charges.push(pair.charge.clone());
            }
        }
        Take { takes: 1, units }
    }

    /// The answer to one of the takes that were made together. A shadow check whose part of the store is down has no
    /// results: it must not change what the others hear.
    pub(super) fn answer(&self, Share { take, taken, nth, .. }: &Share) -> CheckAnswer {
        let judged: Vec<_> = (0..take.units.len()).map(|unit| taken.judge(take, unit, *nth)).collect();
        let of_pair: Vec<Vec<LimitResult>> = self
            .places()
            .zip(&self.pairs)
            .map(|(place, pair)| {
                let found = taken.units.get(place.unit).and_then(|unit| unit.checks.get(place.charge));
                let judged = judged.get(place.unit).and_then(|unit| unit.get(place.charge));
                found
                    .zip(judged)
                    .map_or_else(Vec::new, |(found, judged)| results(&pair.charge, pair.shadow, found, judged))
            })
            .collect();
        let results: Vec<LimitResult> = self
            .pair_of
            .iter()
            .enumerate()
            .flat_map(|(check, &pair)| of_pair[pair].iter().map(move |result| LimitResult { check, ..result.clone() }))
            .collect();
        let allowed = results.iter().all(|result| result.shadow || result.allowed);
        CheckAnswer {
            allowed,
            charge: (allowed && self.needs_charge()).then(|| charge::stamp(self, taken, *nth)),
            deny_cache_ms: if allowed { None } else { Some(self.deny_cache_ms(&results)) },
            results,
        }
    }

    /// Counts what each check was answered, as often as it was asked. A shadow check without results had no decision.
    pub(super) fn count(&self, results: &[LimitResult], took: Duration) {
        let mut rest = results;
        for (check, &pair) in self.pair_of.iter().enumerate() {
            let Pair { counts, shadow, .. } = &self.pairs[pair];
            let mine;
            (mine, rest) = rest.split_at(rest.iter().take_while(|result| result.check == check).count());
            if mine.is_empty() {
                counts.failed(*shadow, took);
            } else {
                counts.decided(*shadow, mine.iter().map(|result| result.reason), took);
            }
        }
    }

    /// Counts a call that had no decision.
    pub(super) fn count_failed(&self, took: Duration) {
        for &pair in &self.pair_of {
            let Pair { counts, shadow, .. } = &self.pairs[pair];
            counts.failed(*shadow, took);
        }
    }

    /// What became of each distinct charge. None of one that only looked, or that was not charged because another denied.
    pub(super) fn outcomes(&self, answer: &CheckAnswer) -> impl Iterator<Item = (&Charge, Outcome)> {
        let mut outcomes = vec![None; self.pairs.len()];
        for result in &answer.results {
            let pair = self.pair_of[result.check];
            if !result.allowed {
                outcomes[pair] = Some(Outcome::Denied);
            } else if outcomes[pair].is_none() && (result.shadow || answer.allowed) {
                outcomes[pair] = Some(Outcome::Taken);
            }
        }
        let outcomes = self.pairs.iter().zip(outcomes).filter(|(pair, _)| pair.charge.cost.tokens() > 0);
        outcomes.filter_map(|(pair, outcome)| Some((&pair.charge, outcome?)))
    }

    /// Enforced pairs are the charges of the first unit, each shadow pair the only one of its own.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        let enforced = self.pairs.iter().filter(|pair| !pair.shadow).count();
        (0..self.pairs.len()).map(move |index| {
            if index < enforced {
                Place { unit: 0, charge: index }
            } else {
                Place { unit: 1 + index - enforced, charge: 0 }
            }
        })
    }

    /// How long the denial holds whatever happens: until the longest wait. Where a ban may follow every denial must be
    /// counted, so there it is 0 until the ban has struck.
    fn deny_cache_ms(&self, results: &[LimitResult]) -> u64 {
        let denied = || results.iter().filter(|result| !result.shadow && !result.allowed);
        let counted = denied().any(|result| {
            let policy = &self.pairs[self.pair_of[result.check]].charge.policy;
            policy.ban().is_some() && result.reason != sluicegate_wire::Reason::Banned
        });
        if counted {
            return 0;
        }
        denied().map(|result| result.retry_after_ms.unwrap_or(NEVER_CACHE_MS)).max().unwrap_or(0)
    }
}

/// What each limit of a charge says.
pub(super) fn results(charge: &Charge, shadow: bool, found: &CheckTaken, judged: &[Judgement]) -> Vec<LimitResult> {
    let policy = &charge.policy;
    let limits = policy.limits().iter().zip(&found.levels).zip(judged);
    limits
        .map(|((limit, level), judgement)| LimitResult {
            check: 0,
            policy: policy.name().to_string(),
            limit: limit.name.to_string(),
            allowed: judgement.allowed(),
            reason: judgement.reason,
            capacity: level.capacity(),
            window_ms: level.window_ms(),
            remaining: judgement.remaining,
            retry_after_ms: judgement.retry_after_ms,
            next_ms: judgement.next_ms,
            full_ms: judgement.full_ms,
            shadow,
        })
        .collect()
}

/// Of a name that is too long to be one, the beginning.
pub(super) fn beginning(name: &str) -> String {
    name.chars().take(Name::MAX_BYTES).collect()
}
