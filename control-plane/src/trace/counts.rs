//! How many spans went where.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

/// The most spans that wait for the collector: some MB. More are dropped, so that a collector that is slow or gone
/// costs no more than that.
pub(super) const MAX_WAITING: usize = 4_096;

/// Counts of spans; clones count together.
#[derive(Clone, Debug)]
pub struct TraceCounts {
    spans: Family<SpanLabels, Counter>,
    delivered: Counter,
    queue_full: Counter,
    undelivered: Counter,
    waiting: Arc<AtomicUsize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SpanLabels {
    outcome: &'static str,
}

impl Default for TraceCounts {
    fn default() -> Self {
        let spans = Family::<SpanLabels, Counter>::default();
        let outcome = |outcome| spans.get_or_create_owned(&SpanLabels { outcome });
        let (delivered, queue_full, undelivered) =
            (outcome("delivered"), outcome("queue_full"), outcome("undelivered"));
        Self { spans, delivered, queue_full, undelivered, waiting: Arc::default() }
    }
}

impl TraceCounts {
    /// Whether one more span may wait; one that may not is counted as dropped.
    pub(super) fn admit(&self) -> bool {
        let room = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |waiting| {
                (waiting < MAX_WAITING).then_some(waiting + 1)
            })
            .is_ok();
        if !room {
            self.queue_full.inc();
        }
        room
    }

    /// So many no longer wait.
    pub(super) fn sending(&self, spans: usize) {
        self.waiting.fetch_sub(spans, Ordering::Relaxed);
    }

    /// What became of them.
    pub(super) fn sent(&self, spans: usize, delivered: bool) {
        let outcome = if delivered { &self.delivered } else { &self.undelivered };
        outcome.inc_by(spans as u64);
    }

    /// Adds the counts to what Prometheus is told.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let help = "Spans by outcome: delivered to the collector, dropped because too many waited, or not taken by it";
        registry.register("trace_spans", help, self.spans.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_and_counts() {
        let counts = TraceCounts::default();
        for _ in 0..MAX_WAITING {
            assert!(counts.admit());
        }
        assert!(!counts.admit() && !counts.admit());
        assert_eq!(counts.queue_full.get(), 2);
        counts.sending(1);
        assert!(counts.admit() && !counts.admit());
    }
}
