//! How answers to clients look.

use sluicegate_wire::{LimitResult, header};

use crate::{HeaderLine, HeaderName, HeaderValue, RejectStatus};

/// How a rule's answers look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The answer to a request that a limit denied.
    pub reject: RejectStyle,
    /// The headers that show the state of the limits, on passed and denied requests alike.
    pub limits: LimitHeaders,
}

/// How a denial looks. Failure verdicts have looks of their own, so that none is taken for another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectStyle {
    /// The status.
    pub status: RejectStatus,
    /// The body; without one problem details. A gRPC client gets its status message instead.
    pub body: Option<String>,
    /// Headers to add; `content-type` is the body's.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// Which headers show the state of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitHeaders {
    /// `RateLimit` and `RateLimit-Policy`.
    pub rate_limit: bool,
    /// `x-ratelimit-limit`, `x-ratelimit-remaining` and `x-ratelimit-reset`.
    pub x_rate_limit: bool,
}

impl Default for LimitHeaders {
    fn default() -> Self {
        Self { rate_limit: true, x_rate_limit: false }
    }
}

impl LimitHeaders {
    /// The headers for these results.
    pub(crate) fn lines(self, results: &[LimitResult]) -> Vec<HeaderLine> {
        let mut lines = Vec::new();
        let mut add = |name: &'static str, value| lines.push((name.into(), value));
        if self.rate_limit {
            for (name, value) in [
                (header::RATE_LIMIT, header::rate_limit(results)),
                (header::RATE_LIMIT_POLICY, header::rate_limit_policy(results)),
            ] {
                if let Some(value) = value {
                    add(name, HeaderValue::new(&value));
                }
            }
        }
        if self.x_rate_limit {
            for (name, value) in header::x_rate_limit(results).into_iter().flatten() {
                add(name, HeaderValue::from(value));
            }
        }
        lines
    }
}
