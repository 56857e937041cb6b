//! The failure verdict: what becomes of a request when the service could not be asked. Every failure path ends here.

use std::fmt;

use sluicegate_wire::{EncodedSubject, header};

use crate::{
    Asked, HeaderValue, Judgement, LocalLimit, Metric, Rejection, Verdict, VerdictLabel,
    local::{self, Taken},
    worker::Surroundings,
};

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
    /// Count in this proxy, and reject what is over.
    Local(LocalLimit),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Not asked: too many failures a moment ago.
    BreakerOpen,
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
            Self::BreakerOpen => "breaker_open",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// Applies the rule's choice. Where every limit is in shadow nothing is rejected: what would have become of the request
/// is marked.
pub(crate) fn judge(asked: &Asked, failure: Failure, around: Surroundings<'_>) -> Judgement {
    let mut measures = vec![Metric::CalloutFailures { kind: failure.kind }.once()];
    let (verdict, label) = match asked.on_failure {
        OnFailure::Open => (None, VerdictLabel::FailureOpen),
        OnFailure::Closed { status } => {
            (Some(Rejection::failure_closed(status, asked.grpc)), VerdictLabel::FailureClosed)
        }
        OnFailure::Local(limit) => {
            let taken = local::take(&limit, &asked.rule, &local_takes(asked), around);
            if taken.overflow() {
                measures.push(Metric::LocalOverflow { rule: asked.rule.clone() }.once());
            }
            match taken {
                Taken::Granted { .. } => (None, VerdictLabel::FailureLocal),
                Taken::Denied { wait_ms, .. } => {
                    (Some(Rejection::failure_local(wait_ms, asked.grpc)), VerdictLabel::FailureLocalDenied)
                }
                Taken::Unusable => {
                    (Some(Rejection::failure_local(Some(1), asked.grpc)), VerdictLabel::FailureLocalDenied)
                }
            }
        }
    };
    let mark = |name: &'static str, label: VerdictLabel| Verdict::Pass {
        response_headers: vec![(name.into(), HeaderValue::new(label.reason()))],
        refund: None,
    };
    let shadow = asked.question.checks.iter().all(|check| check.shadow);
    if shadow && verdict.is_some() {
        measures.push(Metric::Shadow { rule: asked.rule.clone(), verdict: label }.once());
    }
    let (verdict, label) = match verdict {
        _ if shadow => (mark(header::SHADOW, label), VerdictLabel::FailureOpen),
        Some(rejection) => (Verdict::Reject(rejection), label),
        None => (mark(header::REASON, label), label),
    };
    Judgement { verdict, label, failure: Some(failure), measures, log: None }
}

/// Each distinct subject of the question has a bucket, of which the request takes its dearest cost. Limits in shadow take
/// no part beside enforced ones.
fn local_takes(asked: &Asked) -> Vec<(EncodedSubject, u64)> {
    let checks = &asked.question.checks;
    let shadow = checks.iter().all(|check| check.shadow);
    let mut takes: Vec<(EncodedSubject, u64)> = Vec::with_capacity(checks.len());
    for check in checks.iter().filter(|check| check.shadow == shadow) {
        let (subject, cost) = (check.key.encode(None), check.cost.tokens());
        match takes.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, dearest)) => *dearest = cost.max(*dearest),
            None => takes.push((subject, cost)),
        }
    }
    takes
}
