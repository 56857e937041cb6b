//! The policies in use, and what became of the attempts to read them anew.

mod follow;
mod metrics;
mod state;

use std::{sync::Arc, time::SystemTime};

use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::config::{Policies, Version};

pub use follow::Follower;
pub use state::{Attempt, ReloadState};

/// The policies in use: one set at a time, which is replaced as a whole. Clones share it.
#[derive(Clone, Debug)]
pub struct Live(watch::Sender<State>);

#[derive(Clone, Debug)]
struct State {
    policies: Arc<Policies>,
    reload: ReloadState,
}

impl Live {
    /// These policies, as they were read at the start.
    #[must_use]
    pub fn new(policies: Policies) -> Self {
        let reload = ReloadState::started(policies.version(), SystemTime::now());
        Self(watch::Sender::new(State { policies: Arc::new(policies), reload }))
    }

    /// The set in use. Who decides with it asks once, and keeps it to the end of the decision.
    #[must_use]
    pub fn current(&self) -> Arc<Policies> {
        Arc::clone(&self.0.borrow().policies)
    }

    /// The version of the set in use.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.borrow().reload.version
    }

    /// Which set is in use since when, and what became of the last attempt to read another.
    #[must_use]
    pub fn state(&self) -> ReloadState {
        self.0.borrow().reload.clone()
    }

    /// Adds what became of the attempts to what Prometheus is told.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(metrics::Reloads(self.clone())));
    }

    /// Puts a set to use that the file says now.
    fn replace(&self, policies: Policies, needs_restart: Vec<String>, at: SystemTime) {
        self.0.send_modify(|state| {
            if state.policies.version() != policies.version() {
                state.policies = Arc::new(policies);
            }
            state.reload.succeed(state.policies.version(), needs_restart, at);
        });
    }

    /// Keeps the set: what the file says now is of no use.
    fn refuse(&self, error: String, at: SystemTime) {
        self.0.send_modify(|state| state.reload.fail(error, at));
    }
}

#[cfg(test)]
mod tests;
