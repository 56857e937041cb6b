//! The failure verdict: what becomes of a request when the service could not be asked. Every failure path ends here.

use std::fmt;

use sluicegate_wire::{Check, EncodedSubject, header};

use crate::{
    Asked, HeaderValue, Judgement, LocalLimit, Metric, Rejection, Rule, Verdict, VerdictLabel,
    local::{Taken, Takes},
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

impl OnFailure {
    /// How much it limits: of joined rules the strictest has its way.
    const fn strictness(self) -> u8 {
        match self {
            Self::Open => 0,
            Self::Local(_) => 1,
            Self::Closed { .. } => 2,
        }
    }
}

/// Applies the rule's choice; of several rules that were asked together the strictest. Limits in shadow have no say
/// beside enforced ones. Where every limit is in shadow nothing is rejected: what would have become of the request is
/// marked.
pub(crate) fn judge(asked: &Asked, failure: Failure, around: Surroundings<'_>) -> Judgement {
    let shadow = asked.question.checks.iter().all(|check| check.shadow);
    let parts: Vec<Part<'_>> = asked
        .parts()
        .map(|(rule, checks)| Part { rule, checks: checks.iter().filter(|check| check.shadow == shadow).collect() })
        .filter(|part| !part.checks.is_empty())
        .collect();
    let strictest = parts.iter().map(|part| part.rule.on_failure.strictness()).max().unwrap_or_default();
    let mut judgement = Judgement {
        verdict: marked(header::REASON, VerdictLabel::FailureOpen),
        label: VerdictLabel::FailureOpen,
        rule: asked.last().name.clone(),
        measures: vec![Metric::CalloutFailures { kind: failure.kind }.once()],
        failure: Some(failure),
        log: None,
    };
    // Each local rule takes from its own buckets; the first that has too little gives back what those before it took.
    let mut takes = Takes::new(around);
    for Part { rule, checks } in parts.iter().filter(|part| part.rule.on_failure.strictness() == strictest) {
        let (label, rejection) = match &rule.on_failure {
            OnFailure::Open => (VerdictLabel::FailureOpen, None),
            OnFailure::Closed { status } => {
                (VerdictLabel::FailureClosed, Some(Rejection::failure_closed(*status, asked.grpc)))
            }
            OnFailure::Local(limit) => {
                let taken = takes.take(limit, &rule.name, costs(checks));
                if taken.overflow() {
                    judgement.measures.push(Metric::LocalOverflow { rule: rule.name.clone() }.once());
                }
                local_verdict(taken, asked.grpc)
            }
        };
        judgement.label = label;
        judgement.rule.clone_from(&rule.name);
        match rejection {
            None => judgement.verdict = marked(header::REASON, label),
            Some(_) if shadow => {
                judgement.measures.push(Metric::Shadow { rule: rule.name.clone(), verdict: label }.once());
                judgement.verdict = marked(header::SHADOW, label);
                judgement.label = VerdictLabel::FailureOpen;
                break;
            }
            Some(rejection) => {
                judgement.verdict = Verdict::Reject(rejection);
                break;
            }
        }
    }
    judgement
}

/// A rule, and those of its checks that have a say.
struct Part<'a> {
    rule: &'a Rule,
    checks: Vec<&'a Check>,
}

fn marked(name: &'static str, label: VerdictLabel) -> Verdict {
    Verdict::Pass { response_headers: vec![(name.into(), HeaderValue::new(label.reason()))], refund: None }
}

fn local_verdict(taken: Taken, grpc: bool) -> (VerdictLabel, Option<Rejection>) {
    let wait_ms = match taken {
        Taken::Granted { .. } => return (VerdictLabel::FailureLocal, None),
        Taken::Denied { wait_ms, .. } => wait_ms,
        Taken::Unusable => Some(1),
    };
    (VerdictLabel::FailureLocalDenied, Some(Rejection::failure_local(wait_ms, grpc)))
}

/// Each distinct subject has a bucket, of which the request takes its dearest cost.
fn costs(checks: &[&Check]) -> Vec<(EncodedSubject, u64)> {
    let mut costs: Vec<(EncodedSubject, u64)> = Vec::with_capacity(checks.len());
    for check in checks {
        let (subject, cost) = (check.key.encode(None), check.cost.tokens());
        match costs.iter_mut().find(|(known, _)| *known == subject) {
            Some((_, dearest)) => *dearest = cost.max(*dearest),
            None => costs.push((subject, cost)),
        }
    }
    costs
}
