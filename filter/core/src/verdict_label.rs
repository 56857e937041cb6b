//! Verdicts as words.

use sluicegate_wire::Reason;

/// What became of a request, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerdictLabel {
    /// Passed: the service said so.
    Allowed,
    /// Denied: too few tokens.
    OverLimit,
    /// Denied: too many denials before.
    Banned,
    /// Denied: costs more than the limit ever holds.
    Never,
    /// Denied: lacks the value that a limit demands.
    MissingKey,
    /// Passed without an answer of the service, without having been counted.
    FailureOpen,
    /// Rejected for want of an answer of the service.
    FailureClosed,
    /// Passed without an answer of the service, counted in this proxy.
    FailureLocal,
    /// Rejected without an answer of the service, by what was counted in this proxy.
    FailureLocalDenied,
}

impl VerdictLabel {
    /// The word in metrics and in the access log.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::FailureLocalDenied => "failure_local_denied",
            Self::OverLimit
            | Self::Banned
            | Self::Never
            | Self::MissingKey
            | Self::FailureOpen
            | Self::FailureClosed
            | Self::FailureLocal => self.reason(),
        }
    }

    /// The word in the reason header; a request that was simply allowed has none. The status tells a failure's pass
    /// from its rejection.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Allowed => Reason::Ok.as_str(),
            Self::OverLimit => Reason::OverLimit.as_str(),
            Self::Banned => Reason::Banned.as_str(),
            Self::Never => Reason::Never.as_str(),
            Self::MissingKey => "missing_key",
            Self::FailureOpen => "failure_open",
            Self::FailureClosed => "failure_closed",
            Self::FailureLocal | Self::FailureLocalDenied => "failure_local",
        }
    }

    /// What the access log shows as response code details of a rejection.
    pub(crate) const fn details(self) -> &'static str {
        match self {
            Self::Banned => "sluicegate_banned",
            Self::Never => "sluicegate_never",
            Self::MissingKey => "sluicegate_missing_key",
            Self::FailureOpen | Self::FailureClosed => "sluicegate_failure_closed",
            Self::FailureLocal | Self::FailureLocalDenied => "sluicegate_failure_local",
            Self::Allowed | Self::OverLimit => "sluicegate_over_limit",
        }
    }
}

impl From<Reason> for VerdictLabel {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Ok => Self::Allowed,
            Reason::OverLimit => Self::OverLimit,
            Reason::Banned => Self::Banned,
            Reason::Never => Self::Never,
        }
    }
}
