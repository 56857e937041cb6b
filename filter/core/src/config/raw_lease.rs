//! `lease` as written.

use super::{forms::Whole, node::object};
use crate::Span;

/// Tokens of a hot subject, taken in advance.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawLease {
    /// The most tokens of one subject that a proxy holds.
    pub(super) tokens: Whole<1, { sluicegate_wire::LeaseTokens::MAX }>,
    /// How long it holds them, `500ms` to `60s`.
    #[cfg_attr(feature = "schema", schemars(rename = "for"))]
    pub(super) time: Span,
}
object!(RawLease { tokens, time = "for" });
