//! How long the stages of a call take.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
    registry::Registry,
};

/// In seconds: finer around what a healthy store takes, then up to `store.timeout`s that somebody may choose.
const BUCKETS_S: [f64; 14] =
    [0.000_05, 0.000_1, 0.000_2, 0.000_4, 0.000_8, 0.001_5, 0.003, 0.006, 0.012, 0.025, 0.05, 0.1, 0.3, 1.0];

/// The stages of a call; clones count together.
#[derive(Clone, Debug)]
pub(crate) struct Stages {
    family: Family<StageLabels, Histogram, fn() -> Histogram>,
    queue: Histogram,
    store: Histogram,
    total: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StageLabels {
    stage: &'static str,
}

impl Default for Stages {
    fn default() -> Self {
        let family = Family::new_with_constructor((|| Histogram::new(BUCKETS_S)) as fn() -> Histogram);
        let stage = |stage| family.get_or_create_owned(&StageLabels { stage });
        let (queue, store, total) = (stage("queue"), stage("store"), stage("total"));
        Self { family, queue, store, total }
    }
}

impl Stages {
    /// A take waited so long for one like it to come back.
    pub(crate) fn queue(&self, waited: Duration) {
        self.queue.observe(waited.as_secs_f64());
    }

    /// The store took so long to answer, or the call gave up.
    pub(crate) fn store(&self, took: Duration) {
        self.store.observe(took.as_secs_f64());
    }

    /// A whole call, decided or failed.
    pub(crate) fn total(&self, took: Duration) {
        self.total.observe(took.as_secs_f64());
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "stage_duration",
            "Time of a call: waiting for an equal take to come back (queue), in the store, and in total",
            prometheus_client::registry::Unit::Seconds,
            self.family.clone(),
        );
    }
}
