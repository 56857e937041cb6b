//! The proxy's statistics: each metric is defined once, on first use.

use std::collections::BTreeMap;

use sluicegate_filter_core::{LabelForm, Measure, Metric, MetricKind};

use crate::host;

/// The ids of the metrics of one configuration.
#[derive(Debug)]
pub(crate) struct Metrics {
    labels: LabelForm,
    ids: BTreeMap<Metric, Option<u32>>,
}

impl Metrics {
    pub(crate) const fn new(labels: LabelForm) -> Self {
        Self { labels, ids: BTreeMap::new() }
    }

    pub(crate) fn measure(&mut self, Measure { metric, amount }: Measure) {
        let (kind, labels) = (metric.kind(), self.labels);
        let id = match self.ids.get(&metric) {
            Some(id) => *id,
            None => {
                let id = host::define_metric(kind, &metric.name(labels));
                self.ids.insert(metric, id);
                id
            }
        };
        match (id, kind) {
            (None, _) => {}
            (Some(id), MetricKind::Histogram) => host::record_metric(id, amount.unsigned_abs()),
            (Some(id), MetricKind::Counter | MetricKind::Gauge) => host::increment_metric(id, amount),
        }
    }
}
