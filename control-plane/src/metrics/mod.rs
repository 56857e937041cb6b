//! What Prometheus is told.

mod decisions;
mod latencies;
mod process;
mod requests;
mod stages;
mod verdict;

use prometheus_client::{encoding::text, metrics::info::Info, registry::Registry};

use crate::{policies::Live, store::Store, trace::TraceCounts};

pub use decisions::{Decisions, PolicyCounts};
pub use latencies::CLASSES;
pub(crate) use latencies::p99;
pub use requests::{Requests, RequestsOf, count};
pub(crate) use stages::Stages;
pub use verdict::{ByVerdict, Verdict};

/// The counts of the service, as Prometheus reads them.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    decisions: Decisions,
    policies: Live,
    /// Of HTTP requests.
    pub requests: Requests,
}

impl Metrics {
    /// The content type of [`Metrics::text`]: OpenMetrics 1.0, "Overall structure".
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Those of the store, of the configuration, of decisions and traces, of the process, and of requests, which the
    /// listeners count.
    #[must_use]
    pub fn new(store: &Store, policies: &Live, decisions: &Decisions, traces: &TraceCounts) -> Self {
        let mut registry = Registry::default();
        registry.sub_registry_with_prefix("process").register_collector(Box::new(process::ProcessMetrics::new()));
        let ours = registry.sub_registry_with_prefix("sluicegate");
        ours.register("build", "The version", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        let requests = Requests::default();
        requests.register(ours);
        policies.register(ours);
        decisions.register(ours);
        store.stages().register(ours);
        store.register(ours.sub_registry_with_prefix("store"));
        traces.register(ours);
        Self { registry, decisions: decisions.clone(), policies: policies.clone(), requests }
    }

    /// Where others add theirs, under `sluicegate_` and this name.
    pub fn sub_registry(&mut self, name: &str) -> &mut Registry {
        self.registry.sub_registry_with_prefix("sluicegate").sub_registry_with_prefix(name)
    }

    /// All counts as they are now.
    #[must_use]
    pub fn text(&self) -> String {
        // Each policy in use is there before its first check: a rate over what appears with an event misses that.
        self.decisions.know(&self.policies.current());
        let mut text = String::new();
        // A string takes all that is written to it.
        let _ = text::encode(&mut text, &self.registry);
        text
    }
}
