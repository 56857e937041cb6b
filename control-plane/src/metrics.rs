//! What Prometheus is told.

use prometheus_client::{encoding::text, registry::Registry};

use crate::{policies::Live, store::Store};

/// The counts of the service, as Prometheus reads them.
#[derive(Debug)]
pub struct Metrics(Registry);

impl Metrics {
    /// The content type of [`Metrics::text`]: OpenMetrics 1.0, "Overall structure".
    pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

    /// Those of the store and of the configuration.
    #[must_use]
    pub fn new(store: &Store, policies: &Live) -> Self {
        let mut registry = Registry::with_prefix("sluicegate");
        store.register(registry.sub_registry_with_prefix("store"));
        policies.register(&mut registry);
        Self(registry)
    }

    /// Where others add theirs, under `sluicegate_` and this name.
    pub fn sub_registry(&mut self, name: &str) -> &mut Registry {
        self.0.sub_registry_with_prefix(name)
    }

    /// All counts as they are now.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // A string takes all that is written to it.
        let _ = text::encode(&mut text, &self.0);
        text
    }
}
