//! What of the calls of Envoy's rate limit filter found no limit, or not the one that it named.

use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{
    asked::{Ask, Asked},
    message::RateLimitRequest,
};

/// Counts of descriptors.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    unmatched: Family<Unmatched, Counter>,
    overrides_ignored: Counter,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Unmatched {
    by: By,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the label's values as they are written")]
enum By {
    domain,
    descriptor,
}

impl Stats {
    /// Shows the counts.
    pub fn register(&self, registry: &mut Registry) {
        // Each is there from the start: a rate over a count that appears with its first event misses that.
        for by in [By::domain, By::descriptor] {
            drop(self.unmatched.get_or_create(&Unmatched { by }));
        }
        let help = "Descriptors that were allowed because their domain, or they, are not in the configuration";
        registry.register("unmatched", help, self.unmatched.clone());
        let help = "Descriptors with a limit of their own, in place of which that of the policy was used";
        registry.register("overrides_ignored", help, self.overrides_ignored.clone());
    }

    pub(super) fn count(&self, asked: &Asked<'_>, question: &RateLimitRequest) {
        let unmatched = asked.descriptors.iter().filter(|ask| matches!(ask, Ask::Unmatched)).count();
        if unmatched > 0 {
            let by = if asked.domain_known { By::descriptor } else { By::domain };
            self.unmatched.get_or_create(&Unmatched { by }).inc_by(unmatched as u64);
        }
        let overrides = question.descriptors.iter().filter(|descriptor| descriptor.limit.is_some()).count();
        self.overrides_ignored.inc_by(overrides as u64);
    }
}
