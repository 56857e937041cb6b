//! From a check to a take, and from what was taken to an answer.

mod charge;
mod plan;

use sluicegate_lua::{Gift, Give, KeyPrefix};
use sluicegate_wire::{CheckAnswer, CheckRequest, Pepper, RefundAnswer, RefundRequest, Refunded};
use tokio::time::Instant;

use crate::{
    policies::Live,
    store::{Store, StoreError},
};
use charge::Stamps;
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
        let plan = Plan::new(&request.checks, self)?;
        let share = self.store.take(plan.take(), deadline).await?;
        Ok(plan.answer(&share))
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
