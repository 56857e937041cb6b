//! What the filter does between question and verdict, as written.

use super::{
    forms::{Named, SecretText, Whole},
    node::{object, words},
};
use crate::Span;

/// When callouts pause.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawBreaker {
    /// So many failures in a row open it; 0 never does. 5 without.
    pub(super) failures: Option<Whole<0, 1_000_000>>,
    /// How long it stays open. `1s` without.
    pub(super) open_for: Option<Span>,
}
object!(RawBreaker { failures, open_for });

/// Which denials are kept.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawDenyCache {
    /// The most denied questions that a worker keeps; 0 keeps none. 1000 without.
    pub(super) max_entries: Option<Whole<0, 1_000_000>>,
    /// The longest that one is kept. `1s` without.
    pub(super) max_life: Option<Span>,
}
object!(RawDenyCache { max_entries, max_life });

/// How denials look.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawReject<'a> {
    /// The status. 429 without.
    pub(super) status: Option<Whole<400, 599>>,
    /// The body. Problem details without.
    pub(super) body: Option<&'a str>,
    /// Headers to add.
    pub(super) headers: Option<Named<'a, SecretText<'a>>>,
}
object!(RawReject<'a> { status, body, headers });

/// What stays charged.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawCharge {
    /// Only responses with these statuses; others give back what was taken.
    #[cfg_attr(feature = "schema", schemars(length(min = 1)))]
    pub(super) only_status: Vec<Whole<200, 599>>,
}
object!(RawCharge { only_status });

/// How the filter's metrics are named.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawMetrics {
    /// How labels stand in names. `envoy` without.
    pub(super) labels: Option<RawLabels>,
}
object!(RawMetrics { labels });

/// How labels stand in names.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "snake_case"))]
pub(super) enum RawLabels {
    Envoy,
    Istio,
}
words!(RawLabels { "envoy" => Envoy, "istio" => Istio });

/// Headers that show the state of the limits.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "snake_case"))]
pub(super) enum RawLimitHeader {
    RateLimit,
    XRateLimit,
}
words!(RawLimitHeader { "rate_limit" => RateLimit, "x_rate_limit" => XRateLimit });
