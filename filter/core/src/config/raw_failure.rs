//! `on_failure` as written.

use super::{
    ConfigError,
    forms::Whole,
    node::{Node, Read, object},
};
use crate::{LocalLimit, Span};

/// `open`, `closed`, `{closed: {status}}`, or `{local: {capacity, refill, per, slots}}`.
#[derive(Default)]
pub(super) enum RawOnFailure {
    #[default]
    Open,
    Closed(RawClosed),
    Local(RawLocal),
}

/// Reject.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawClosed {
    /// The status. 429 without.
    pub(super) status: Option<Whole<400, 599>>,
}
object!(RawClosed { status });

/// Count in this proxy: a token bucket for each subject of the rule.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawLocal {
    /// The most tokens of a bucket.
    pub(super) capacity: Whole<1, { 1 << 53 }>,
    /// So many tokens come in `per`.
    pub(super) refill: Whole<1, { 1 << 53 }>,
    /// The time in which `refill` tokens come.
    pub(super) per: Span,
    /// The most buckets of the rule. 4096 without.
    pub(super) slots: Option<Whole<{ LocalLimit::MIN_SLOTS as u64 }, { LocalLimit::MAX_SLOTS as u64 }>>,
}
object!(RawLocal { capacity, refill, per, slots });

/// The forms of `on_failure` that are objects.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = super::schema::one_of(&["closed", "local"]))))]
pub(super) struct RawFailureForm {
    closed: Option<RawClosed>,
    local: Option<RawLocal>,
}
object!(RawFailureForm { closed, local });

impl<'a> Read<'a> for RawOnFailure {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        match node.text() {
            Some("open") => return Ok(Self::Open),
            Some("closed") => return Ok(Self::Closed(RawClosed::default())),
            None if node.value.is_object() => {}
            _ => return Err(node.wrong("use open, closed, {closed: {status: …}} or {local: {capacity, refill, per}}")),
        }
        let wrong = node.wrong("give one of closed and local");
        match RawFailureForm::read(node)? {
            RawFailureForm { closed: Some(closed), local: None } => Ok(Self::Closed(closed)),
            RawFailureForm { closed: None, local: Some(local) } => Ok(Self::Local(local)),
            RawFailureForm { .. } => Err(wrong),
        }
    }
}
