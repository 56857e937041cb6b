//! A lease: tokens that a proxy takes in advance and gives out itself.

use std::sync::Arc;

use sluicegate_lua::{Charge, Policy, Rule, Take, Unit};
use sluicegate_wire::{Cost, LeaseAnswer, LeaseRequest};
use tokio::time::Instant;

use super::{
    CallerLeft, Limiter,
    plan::{beginning, results},
};
use crate::{metrics::Verdict, store::StoreError, top::Outcome};

/// Why there is no lease.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// No policy of that name.
    #[error("policy: there is no policy {policy:?}")]
    UnknownPolicy {
        /// The name asked for, or the beginning of one that is too long to be a name.
        policy: String,
    },
    /// The policy is none that can be leased from.
    #[error("policy: {policy} {why}; take `lease` off the limits of the filter that name it")]
    Unleasable {
        /// Its name.
        policy: String,
        /// What is in the way.
        why: Unleasable,
    },
    /// The store did not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What about a policy is in the way of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unleasable {
    /// A proxy would deny, or not, without the ban's knowledge, and pass those that it struck.
    #[error("has a ban, which must see every request")]
    Ban,
    /// What one limit has may be more than what another one has.
    #[error("has several limits, and a lease is of one")]
    SeveralLimits,
    /// Tokens of one window would be spent in the next.
    #[error("counts by the calendar, and a lease may outlast its window")]
    Quota,
}

impl Unleasable {
    /// What keeps proxies from leasing from this policy, or nothing.
    #[must_use]
    pub fn why(policy: &Policy) -> Option<Self> {
        if policy.ban().is_some() {
            return Some(Self::Ban);
        }
        match policy.limits() {
            [limit] => matches!(limit.rule, Rule::Quota(_)).then_some(Self::Quota),
            _ => Some(Self::SeveralLimits),
        }
    }
}

impl Limiter {
    /// Takes as many tokens as there are, up to the request's `max`, before `deadline`. Never retry it: a reply that was
    /// lost may have taken them.
    pub async fn lease(&self, request: &LeaseRequest, deadline: Instant) -> Result<LeaseAnswer, LeaseError> {
        let policies = self.policies.current();
        let policy = policies
            .get(&request.policy)
            .ok_or_else(|| LeaseError::UnknownPolicy { policy: beginning(&request.policy) })?;
        if let Some(why) = Unleasable::why(policy) {
            return Err(LeaseError::Unleasable { policy: policy.name().to_string(), why });
        }
        let keys = self.prefix.keys(policy.name(), &request.key.encode(self.pepper.as_ref()));
        let charge = Charge { policy: Arc::clone(policy), keys, cost: Cost::ONE };
        // Equal takes one after another, of which the first ones are granted: the script divides, whatever their number.
        let unit = Unit { charges: vec![charge.clone()], enforced: true };
        let take = Take { takes: request.max.get(), units: vec![unit] };
        let counts = self.decisions.of(policy);
        let asked = Instant::now();
        let left = CallerLeft(&self.decisions);
        let taken = self.store.take_many(&take, &charge.keys, deadline).await;
        std::mem::forget(left);
        let took = asked.elapsed();
        self.store.stages().total(took);
        let taken = taken.inspect_err(|_| counts.leased(Verdict::Failed, 0))?;
        let granted = taken.units.first().map_or(0, |unit| unit.granted);
        let found = taken.units.first().and_then(|unit| unit.checks.first());
        let judged = taken.judge(&take, 0, granted.max(1));
        let of_limit = found.zip(judged.first());
        let result = of_limit.and_then(|(found, judged)| results(&charge, false, found, judged).into_iter().next());
        let Some(result) = result else {
            return Err(StoreError::Refused("its reply has no limit".into()).into());
        };
        counts.leased(result.reason.into(), granted);
        if granted > 0 {
            let now = (asked + took).into_std();
            self.top.record(policy.name(), charge.keys.subject(), Outcome::Taken, granted, now);
        }
        let deny_cache_ms = if granted > 0 { None } else { result.retry_after_ms };
        Ok(LeaseAnswer { granted, result, deny_cache_ms })
    }
}
