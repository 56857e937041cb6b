//! The failure verdict: what becomes of a request when the service could not be asked. Every failure path ends here.

use std::fmt;

use sluicegate_wire::header;

use crate::{Asked, HeaderValue, Rejection, Verdict};

/// A rule's choice for requests about which the service gave no answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Pass: availability before limits. The default, as in Envoy's own rate limit filter.
    #[default]
    Open,
    /// Reject: limits before availability.
    Closed {
        /// With this status.
        status: RejectStatus,
    },
}

/// The status of a rejection, 400 to 599; 429 unless chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectStatus(u16);

/// Why a number is not the status of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the status of a rejection is a whole number from 400 to 599")]
pub struct RejectStatusError;

impl RejectStatus {
    /// Too Many Requests (RFC 6585 section 4).
    pub const TOO_MANY_REQUESTS: Self = Self(429);

    /// A status, refused when a client would not take it for a rejection.
    pub fn new(code: u16) -> Result<Self, RejectStatusError> {
        if (400..=599).contains(&code) { Ok(Self(code)) } else { Err(RejectStatusError) }
    }

    /// The status code.
    #[must_use]
    pub const fn code(self) -> u16 {
        self.0
    }
}

impl Default for RejectStatus {
    fn default() -> Self {
        Self::TOO_MANY_REQUESTS
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, for counting.
    pub kind: FailureKind,
    /// What was seen, for a person.
    pub detail: String,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into() }
    }
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// The proxy did not send the callout.
    DispatchRefused,
    /// No answer in time.
    Timeout,
    /// The connection failed, or the answer broke off.
    Transport,
    /// An answer, but not the service's.
    Unmarked,
    /// The service's answer makes no sense.
    Malformed,
    /// The service answered 5xx: its store is out of reach, or it is overloaded.
    Unavailable,
    /// The service answered 4xx: filter and service are configured differently.
    Config,
}

impl FailureKind {
    /// The kind as one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DispatchRefused => "dispatch_refused",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Unmarked => "unmarked",
            Self::Malformed => "malformed",
            Self::Unavailable => "unavailable",
            Self::Config => "config",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The reason header of a request that passed without having been counted.
const FAILURE_OPEN: &str = "failure_open";

/// Applies the rule's choice.
pub(crate) fn verdict(asked: &Asked) -> Verdict {
    match asked.on_failure {
        OnFailure::Open => Verdict::Pass { response_headers: vec![(header::REASON, HeaderValue::new(FAILURE_OPEN))] },
        OnFailure::Closed { status } => Verdict::Reject(Rejection::failure_closed(status, asked.grpc)),
    }
}
