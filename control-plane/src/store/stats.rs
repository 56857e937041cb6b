//! What the store counts.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::StoreError;
use crate::metrics::Stages;

/// Counts since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Stats {
    /// Takes that travelled with another.
    pub(super) joined: Counter,
    /// Give-backs that failed: the tokens stay gone until they refill.
    pub(super) give_back_failures: Counter,
    /// How long takes wait for each other and for the store.
    pub(super) stages: Stages,
    failures: Family<FailureLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FailureLabels {
    reason: &'static str,
}

impl Stats {
    /// A call to the store gave no decision.
    pub(super) fn failed(&self, error: &StoreError) {
        self.failures.get_or_create(&FailureLabels { reason: error.reason() }).inc();
    }

    /// Adds the counts to what Prometheus is told.
    pub(super) fn register(&self, registry: &mut Registry) {
        let mut add = |name, help, counter: &Counter| registry.register(name, help, counter.clone());
        add("joined_takes", "Takes that travelled to the store together with an equal one", &self.joined);
        add(
            "give_back_failures",
            "What one slot of a cluster took in vain and could not be given back: it refills in its time",
            &self.give_back_failures,
        );
        // Each is there from the start: a rate over a count that appears with its first event misses that.
        for reason in StoreError::REASONS {
            drop(self.failures.get_or_create(&FailureLabels { reason }));
        }
        registry.register("failures", "Decisions that the store failed to make, by reason", self.failures.clone());
    }
}
