//! What is counted, and the name of each count in the proxy's statistics.

use sluicegate_wire::Name;

use crate::{FailureKind, VerdictLabel};

/// One number in the proxy's statistics. All workers share it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Requests that a rule decided.
    Requests {
        /// The rule.
        rule: Name,
        /// What became of them.
        verdict: VerdictLabel,
    },
    /// Requests that no rule is for, that one exempts, or whose limits were all skipped.
    Unmatched,
    /// Limits that were skipped, because a request lacked the value of their key.
    Skipped {
        /// The rule.
        rule: Name,
    },
    /// Limits whose policy or cost is the default, because a request said something that could not be taken.
    Fallbacks {
        /// The rule.
        rule: Name,
    },
    /// Requests that a limit in shadow would have denied.
    Shadow {
        /// The rule.
        rule: Name,
        /// What would have become of them.
        verdict: VerdictLabel,
    },
    /// The time of callouts, in ms, up to their answer or their end without one.
    CalloutMs,
    /// Requests whose callout failed, or that an open breaker kept from one, and leases that were asked for in vain.
    CalloutFailures {
        /// Why.
        kind: FailureKind,
    },
    /// Denials without a callout.
    DenyCacheHits {
        /// The rule.
        rule: Name,
    },
    /// Requests for which a rule's local buckets had no slot free.
    LocalOverflow {
        /// The rule.
        rule: Name,
    },
    /// Charges given back.
    Refunds {
        /// The rule.
        rule: Name,
    },
    /// Leases that granted tokens.
    Leases {
        /// The rule.
        rule: Name,
    },
    /// Tokens of leases.
    LeasedTokens {
        /// The rule.
        rule: Name,
    },
    /// Limits of requests that a lease answered.
    LeaseHits {
        /// The rule.
        rule: Name,
    },
    /// Tokens of leases that were given back. Who gives them back doesn't know their rule.
    LeaseReturnedTokens,
    /// Workers whose breaker is open.
    BreakerOpen,
}

/// How the proxy keeps a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only ever grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution of values.
    Histogram,
}

/// A change of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// The metric.
    pub metric: Metric,
    /// By how much it changes; for a histogram the value observed.
    pub amount: i64,
}

/// How labels stand in a name. The proxy knows names alone: it finds labels in them by the patterns of its
/// `stats_config`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelForm {
    /// `NAME.rule.=.login.;`, for the patterns in `envoy/envoy.yaml`.
    #[default]
    Envoy,
    /// `NAME.rule=.=login;.;`, for the patterns that Istio makes of `extraStatTags: [rule, verdict, kind]`.
    Istio,
}

impl Metric {
    /// How the proxy keeps it.
    #[must_use]
    pub const fn kind(&self) -> MetricKind {
        match self {
            Self::CalloutMs => MetricKind::Histogram,
            Self::BreakerOpen => MetricKind::Gauge,
            Self::Requests { .. }
            | Self::Unmatched
            | Self::Skipped { .. }
            | Self::Fallbacks { .. }
            | Self::Shadow { .. }
            | Self::CalloutFailures { .. }
            | Self::DenyCacheHits { .. }
            | Self::LocalOverflow { .. }
            | Self::Refunds { .. }
            | Self::Leases { .. }
            | Self::LeasedTokens { .. }
            | Self::LeaseHits { .. }
            | Self::LeaseReturnedTokens => MetricKind::Counter,
        }
    }

    /// Its name with its labels.
    #[must_use]
    pub fn name(&self, form: LabelForm) -> String {
        let mut name = String::from("sluicegate_");
        name.push_str(match self {
            Self::Requests { .. } => "requests_total",
            Self::Unmatched => "unmatched_total",
            Self::Skipped { .. } => "skipped_total",
            Self::Fallbacks { .. } => "fallbacks_total",
            Self::Shadow { .. } => "shadow_total",
            Self::CalloutMs => "callout_ms",
            Self::CalloutFailures { .. } => "callout_failures_total",
            Self::DenyCacheHits { .. } => "deny_cache_hits_total",
            Self::LocalOverflow { .. } => "local_overflow_total",
            Self::Refunds { .. } => "refunds_total",
            Self::Leases { .. } => "leases_total",
            Self::LeasedTokens { .. } => "leased_tokens_total",
            Self::LeaseHits { .. } => "lease_hits_total",
            Self::LeaseReturnedTokens => "lease_returned_tokens_total",
            Self::BreakerOpen => "breaker_open",
        });
        let mut label = |label: &str, value: &str| {
            let (equals, end) = match form {
                LabelForm::Envoy => (".=.", ".;"),
                LabelForm::Istio => ("=.=", ";.;"),
            };
            for text in [".", label, equals, value, end] {
                name.push_str(text);
            }
        };
        match self {
            Self::Requests { rule, verdict } | Self::Shadow { rule, verdict } => {
                label("rule", rule.as_str());
                label("verdict", verdict.as_str());
            }
            Self::Skipped { rule }
            | Self::Fallbacks { rule }
            | Self::DenyCacheHits { rule }
            | Self::LocalOverflow { rule }
            | Self::Refunds { rule }
            | Self::Leases { rule }
            | Self::LeasedTokens { rule }
            | Self::LeaseHits { rule } => label("rule", rule.as_str()),
            Self::CalloutFailures { kind } => label("kind", kind.as_str()),
            Self::Unmatched | Self::CalloutMs | Self::LeaseReturnedTokens | Self::BreakerOpen => {}
        }
        name
    }

    /// One more of it.
    #[must_use]
    pub const fn once(self) -> Measure {
        Measure { metric: self, amount: 1 }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn labels_stand_in_the_name() {
        let metric = Metric::Requests { rule: "a.b".parse().unwrap(), verdict: VerdictLabel::OverLimit };
        assert_eq!(metric.name(LabelForm::Envoy), "sluicegate_requests_total.rule.=.a.b.;.verdict.=.over_limit.;");
        assert_eq!(metric.name(LabelForm::Istio), "sluicegate_requests_total.rule=.=a.b;.;.verdict=.=over_limit;.;");
        assert_eq!(Metric::BreakerOpen.name(LabelForm::Envoy), "sluicegate_breaker_open");
    }
}
