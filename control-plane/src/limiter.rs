//! From a check to a take, and from what was taken to an answer.

mod charge;
mod lease;
mod plan;

use std::{
    mem,
    time::{Duration, SystemTime},
};

use sluicegate_lua::{Gift, Give, KeyPrefix};
use sluicegate_wire::{CheckAnswer, CheckRequest, Pepper, RefundAnswer, RefundRequest, Refunded};
use tokio::time::Instant;

use crate::{
    metrics::Decisions,
    policies::Live,
    store::{Store, StoreError},
    top::Top,
};
use charge::Stamps;
pub use lease::{LeaseError, Unleasable};
use plan::Plan;

/// Decides checks.
#[derive(Clone, Debug)]
pub struct Limiter {
    /// What is limited.
    pub policies: Live,
    /// What every key begins with.
    pub prefix: KeyPrefix,
    /// What goes into the digests of secrets that callers leave to the service.
    pub pepper: Option<Pepper>,
    /// Where the limits are kept.
    pub store: Store,
    /// Counts what is decided.
    pub decisions: Decisions,
    /// Who takes most and is denied most.
    pub top: Top,
}

/// When the stages of a call ended, as far as it got.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// When the store was asked.
    pub asked: Option<SystemTime>,
    /// How long the take waited for an equal one to come back; none where the store gave no decision.
    pub queued: Option<Duration>,
    /// How long it was until the store's decision or failure, the wait included.
    pub took: Option<Duration>,
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
    /// A refund's `charge` is not that of these checks.
    #[error("charge: not what the answer to these checks carried; send the same checks with it")]
    OtherCharge,
    /// The store did not decide.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Limiter {
    /// Takes for all enforced checks or for none, and for each shadow check on its own, before `deadline`.
    pub async fn check(&self, request: &CheckRequest, deadline: Instant) -> Result<CheckAnswer, CheckError> {
        self.check_timed(request, deadline, &mut Timing::default()).await
    }

    /// As [`Limiter::check`], and says how long the stages took.
    pub async fn check_timed(
        &self,
        request: &CheckRequest,
        deadline: Instant,
        timing: &mut Timing,
    ) -> Result<CheckAnswer, CheckError> {
        let plan = Plan::new(&request.checks, self)?;
        let asked = Instant::now();
        timing.asked = Some(SystemTime::now());
        let left = CallerLeft(&self.decisions);
        let decided = self.store.take(plan.take(), deadline).await;
        mem::forget(left);
        let took = asked.elapsed();
        timing.took = Some(took);
        self.store.stages().total(took);
        let share = decided.inspect_err(|_| plan.count_failed(took))?;
        timing.queued = Some(share.queued);
        let answer = plan.answer(&share);
        plan.count(&answer.results, took);
        let now = (asked + took).into_std();
        for (charge, outcome) in plan.outcomes(&answer) {
            self.top.record(charge.policy.name(), charge.keys.subject(), outcome, 1, now);
        }
        Ok(answer)
    }

    /// Gives back what an allowed call took, all in one step, before `deadline`. Never retry it: a reply that was lost
    /// doesn't mean that nothing was given.
    pub async fn refund(&self, request: &RefundRequest, deadline: Instant) -> Result<RefundAnswer, CheckError> {
        let plan = Plan::new(&request.checks, self)?;
        let stamps = Stamps::parse(request.charge.as_deref(), &plan)?;
        let charged = plan.charges().zip(stamps.of_charges());
        let gifts = charged.filter_map(|(charge, stamps)| Some(Gift { charge: charge.clone(), stamps: stamps? }));
        let give = Give { gifts: gifts.collect() };
        let given = self.store.give(&give, deadline).await?;
        let results = give.gifts.iter().zip(&given.tokens).flat_map(|(gift, tokens)| {
            let policy = &gift.charge.policy;
            policy.limits().iter().zip(tokens).map(|(limit, refunded)| Refunded {
                policy: policy.name().to_string(),
                limit: limit.name.to_string(),
                refunded: *refunded,
            })
        });
        Ok(RefundAnswer { results: results.collect() })
    }

    /// Whether checks can be decided, or why not.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.store.ready()
    }
}

/// Dropped only when a caller leaves while its call is under way, which drops the call too.
struct CallerLeft<'a>(&'a Decisions);

impl Drop for CallerLeft<'_> {
    fn drop(&mut self) {
        self.0.abandoned();
    }
}
