//! The configuration as written: which fields there are, and the form of each.

use serde_json::Value;
use sluicegate_wire::Name;

use super::{
    ConfigError,
    forms::{Named, SecretText},
    json,
    node::object,
    protobuf,
    raw_choice::{RawCost, RawPolicy},
    raw_failure::RawOnFailure,
    raw_key::RawKeyPart,
    raw_lease::RawLease,
    raw_match::RawMatch,
    raw_runtime::{RawBreaker, RawCharge, RawDenyCache, RawLimitHeader, RawMetrics, RawReject},
};
use crate::Timeout;

/// The object, from JSON or else from a Struct, whose first bytes (a line feed, a length, a line feed) are no
/// configuration in JSON.
pub(super) fn parse(bytes: &[u8]) -> Result<Value, ConfigError> {
    if bytes.trim_ascii().is_empty() {
        return Err(ConfigError::Empty);
    }
    json::parse(bytes).or_else(|error| protobuf::decode_struct(bytes).ok_or(error))
}

/// The filter's configuration.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawConfig<'a> {
    /// How to reach the service.
    pub(super) service: RawService<'a>,
    /// Goes into the digests of secrets; the service needs the same. Without it, or empty, they are plain SHA-256.
    pub(super) key_pepper: Option<SecretText<'a>>,
    /// The first rule that matches a request decides; a request that none matches passes.
    pub(super) rules: Vec<RawRule<'a>>,
    /// Judge and mark, but reject nothing. False without.
    pub(super) shadow: Option<bool>,
    /// When callouts pause.
    pub(super) breaker: Option<RawBreaker>,
    /// Which denials are kept.
    pub(super) deny_cache: Option<RawDenyCache>,
    /// How denials look.
    pub(super) reject: Option<RawReject<'a>>,
    /// Which headers show the state of the limits. `[rate_limit]` without.
    pub(super) headers: Option<Vec<RawLimitHeader>>,
    /// How the filter's metrics are named.
    pub(super) metrics: Option<RawMetrics>,
}
object!(RawConfig<'a> { service, key_pepper, rules, shadow, breaker, deny_cache, reject, headers, metrics });

/// How to reach the service.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawService<'a> {
    /// The proxy's name for the service's cluster.
    pub(super) cluster: &'a str,
    /// The `:authority` of callouts. `sluicegate` without.
    pub(super) authority: Option<&'a str>,
    /// How long a request waits for the service. `25ms` without.
    pub(super) timeout: Option<Timeout>,
    /// Headers to add to each callout, such as a token.
    pub(super) headers: Option<Named<'a, SecretText<'a>>>,
}
object!(RawService<'a> { cluster, authority, timeout, headers });

/// A rule: which requests, which limits, and what to do without an answer.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawRule<'a> {
    /// Its name, unlike that of any other rule.
    #[cfg_attr(feature = "schema", schemars(with = "super::schema::Name"))]
    pub(super) name: Name,
    /// The requests it is for. Every request without.
    #[cfg_attr(feature = "schema", schemars(rename = "match"))]
    pub(super) matcher: Option<RawMatch<'a>>,
    /// What to ask the service. `[]` exempts the request from the rules below.
    #[cfg_attr(feature = "schema", schemars(length(max = super::check::MAX_LIMITS)))]
    pub(super) limits: Vec<RawLimit<'a>>,
    /// Ask about these limits, then go on matching: those of later rules come in addition. False without.
    #[cfg_attr(feature = "schema", schemars(rename = "continue"))]
    pub(super) go_on: Option<bool>,
    /// How long a request waits for the service. The service's timeout without.
    pub(super) timeout: Option<Timeout>,
    /// What to do without an answer of the service. `open` without.
    pub(super) on_failure: Option<RawOnFailure>,
    /// Judge and mark, but reject nothing. False without.
    pub(super) shadow: Option<bool>,
    /// How denials look. Without, as the top level says.
    pub(super) reject: Option<RawReject<'a>>,
    /// What stays charged. Everything without.
    pub(super) charge: Option<RawCharge>,
}
object!(RawRule<'a> { name, matcher = "match", limits, go_on = "continue", timeout, on_failure, shadow, reject, charge });

/// One question: a policy about a key.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawLimit<'a> {
    /// A policy of the service.
    pub(super) policy: RawPolicy<'a>,
    /// Who is counted: 1 to 8 parts.
    #[cfg_attr(feature = "schema", schemars(length(min = 1, max = crate::Key::MAX_PARTS)))]
    pub(super) key: Vec<RawKeyPart<'a>>,
    /// Tokens that one request takes. 1 without.
    pub(super) cost: Option<RawCost<'a>>,
    /// Judge and mark, but reject nothing. False without.
    pub(super) shadow: Option<bool>,
    /// Serve hot subjects from tokens that were taken in advance. Each request is asked about without.
    pub(super) lease: Option<RawLease>,
}
object!(RawLimit<'a> { policy, key, cost, shadow, lease });
