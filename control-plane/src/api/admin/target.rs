//! One policy and subject, as an operator names them.

use std::sync::Arc;

use sluicegate_lua::{Call, Charge, Keys, Policy};
use sluicegate_wire::{Cost, EncodedSubject, Name};
use tokio::time::Instant;

use super::{AdminError, Key};
use crate::{api::App, store::StoreError};

/// How long an operator waits for the store at least, whatever `store.timeout` is for callers.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);

/// A policy and a subject.
pub(super) struct Target {
    pub(super) policy: Arc<Policy>,
    pub(super) keys: Keys,
    pub(super) subject: EncodedSubject,
}

impl Target {
    pub(super) fn find(app: &App, policy: &str, key: &Key) -> Result<Self, AdminError> {
        Self::of(app, policy, key.encode(app.limiter.pepper.as_ref()))
    }

    pub(super) fn of(app: &App, policy: &str, subject: EncodedSubject) -> Result<Self, AdminError> {
        let policy = self::policy(app, policy)?;
        let keys = app.limiter.prefix.keys(policy.name(), &subject);
        Ok(Self { policy, keys, subject })
    }

    /// The subject charged with so many tokens.
    pub(super) fn charge(&self, cost: Cost) -> Charge {
        Charge { policy: Arc::clone(&self.policy), keys: self.keys.clone(), cost }
    }

    pub(super) async fn run(&self, app: &App, call: &Call) -> Result<Vec<i64>, StoreError> {
        app.limiter.store.run(call, &self.keys, deadline(app)).await
    }
}

/// The policy in use of this name.
pub(super) fn policy(app: &App, name: &str) -> Result<Arc<Policy>, AdminError> {
    let known = app.limiter.policies.current().get(name).cloned();
    known.ok_or_else(|| AdminError::NoPolicy(name.chars().take(Name::MAX_BYTES).collect()))
}

/// When a call for an operator that begins now must be over.
pub(super) fn deadline(app: &App) -> Instant {
    Instant::now() + app.store_timeout.max(PATIENCE)
}
