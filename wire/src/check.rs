//! `POST /v1/check`: the question and the answer.

use serde::{Deserialize, Serialize};

use crate::{Cost, Subject};

/// The body of `POST /v1/check`: all of these or none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckRequest {
    /// The checks, in the order that results refer to.
    #[cfg_attr(feature = "openapi", schema(max_items = 64))]
    pub checks: Vec<Check>,
}

/// One policy asked about one subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Check {
    /// The policy's name.
    pub policy: String,
    /// Who is limited.
    pub key: Subject,
    /// Tokens to take from each of the policy's limits; 0 looks without taking.
    #[serde(default)]
    pub cost: Cost,
    /// Judge and charge on its own, without a say in whether the call is allowed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shadow: bool,
}

/// The body of a 200 or 429 answer to `POST /v1/check`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CheckAnswer {
    /// Whether every enforced check was allowed. When false, none of them was charged.
    pub allowed: bool,
    /// One result for each limit of each check, in order.
    pub results: Vec<LimitResult>,
    /// On an allowed call with quotas or shadow checks: what a refund of it passes back, opaque to the caller. It says
    /// what was charged, and in which window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<String>,
    /// On a denial: how long a proxy may answer the same question from memory, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny_cache_ms: Option<u64>,
}

/// The body of `POST /v1/refund`: the checks of an allowed call, whose tokens were not needed after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundRequest {
    /// The checks as they were asked.
    pub checks: Vec<Check>,
    /// The answer's `charge`, where it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<String>,
}

/// The body of a 200 answer to `POST /v1/refund`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RefundAnswer {
    /// One for each limit of each distinct check that was charged, enforced ones first.
    pub results: Vec<Refunded>,
}

/// What one limit got back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Refunded {
    /// The policy's name.
    pub policy: String,
    /// The limit's name.
    pub limit: String,
    /// Tokens given back: fewer than asked where the limit is full, or a quota's window over.
    pub refunded: u64,
}

/// What one limit said to one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LimitResult {
    /// The index of the check in the request.
    pub check: usize,
    /// The policy's name.
    pub policy: String,
    /// The limit's name.
    pub limit: String,
    /// Whether this limit would have let the check pass.
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
    /// The most tokens the limit holds.
    pub capacity: u64,
    /// The time the limit takes to fill from empty, in ms; a quota's current window.
    pub window_ms: u64,
    /// Whole tokens left; on a denial, before the take.
    pub remaining: u64,
    /// The wait until this cost would pass this limit, in ms: 0 when it passes, null when it never can.
    pub retry_after_ms: Option<u64>,
    /// The time to one more token, in ms; 0 when full.
    pub next_ms: u64,
    /// The time until full, in ms.
    pub full_ms: u64,
    /// Whether the check was a shadow check, which never denies.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shadow: bool,
}

/// Why a limit allowed or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Enough tokens.
    Ok,
    /// Too few tokens now.
    OverLimit,
    /// Denied too often a moment ago.
    Banned,
    /// The cost is more than the limit ever holds.
    Never,
}

impl Reason {
    /// The word used on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OverLimit => "over_limit",
            Self::Banned => "banned",
            Self::Never => "never",
        }
    }
}

/// The one result that headers describe: of the enforced limits that denied, the one with the longest wait (never is
/// the longest); when none denied, the one nearest to denying.
#[must_use]
pub fn decisive(results: &[LimitResult]) -> Option<&LimitResult> {
    let enforced = || results.iter().filter(|result| !result.shadow);
    let wait = |result: &&LimitResult| result.retry_after_ms.unwrap_or(u64::MAX);
    enforced()
        .filter(|result| !result.allowed)
        .max_by_key(wait)
        .or_else(|| enforced().min_by_key(|result| (result.remaining, u64::MAX - result.full_ms)))
}

/// The shadow denial with the longest wait: what would have been said if its limit were enforced.
#[must_use]
pub fn shadow_denial(results: &[LimitResult]) -> Option<&LimitResult> {
    let denied = results.iter().filter(|result| result.shadow && !result.allowed);
    denied.max_by_key(|result| result.retry_after_ms.unwrap_or(u64::MAX))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_false(flag: &bool) -> bool {
    !*flag
}
