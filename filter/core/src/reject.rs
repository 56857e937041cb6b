//! The one place that builds a rejection.

use sluicegate_wire::{CheckAnswer, LimitResult, Problem, Reason, decisive, header};

use crate::{HeaderValue, RejectStatus, judge::rate_limit_headers};

/// A response that the filter makes itself.
#[derive(Debug)]
pub struct Rejection {
    /// The status.
    pub status: RejectStatus,
    /// Headers.
    pub headers: Vec<(&'static str, HeaderValue)>,
    /// The body: problem details, or for a gRPC client its status message.
    pub body: String,
    /// The status for a gRPC client, which the proxy uses for gRPC requests alone.
    pub grpc_status: GrpcStatus,
    /// What the proxy's access log shows as response code details.
    pub details: &'static str,
}

/// Status codes of gRPC (gRPC "Status codes and their use in gRPC").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrpcStatus {
    /// `RESOURCE_EXHAUSTED`: over a limit.
    ResourceExhausted = 8,
    /// `UNAVAILABLE`: the limiter could not be asked.
    Unavailable = 14,
}

impl GrpcStatus {
    /// The code as the host wants it.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }
}

/// The reason header of a request rejected without having been counted.
const FAILURE_CLOSED: &str = "failure_closed";
/// The wait after a failure, in seconds: long enough not to hammer, short enough not to prolong an outage.
const FAILURE_RETRY_AFTER_S: u64 = 1;

impl Rejection {
    /// A request that a limit denied.
    pub(crate) fn denied(answer: &CheckAnswer, grpc: bool) -> Self {
        let reason = decisive(&answer.results).map_or(Reason::OverLimit, |result| result.reason);
        let status = RejectStatus::TOO_MANY_REQUESTS;
        let limits = denying(&answer.results);
        let message = format!("{}: {}", reason.as_str(), limits.join(", "));
        let problem = Problem::quota_exceeded(status.code(), limits);
        let rejection = Self::new(status, reason.as_str(), &problem, grpc.then_some(message));
        Self {
            grpc_status: GrpcStatus::ResourceExhausted,
            details: match reason {
                Reason::Banned => "sluicegate_banned",
                Reason::Never => "sluicegate_never",
                Reason::Ok | Reason::OverLimit => "sluicegate_over_limit",
            },
            ..rejection
        }
        .retry_after(header::retry_after(&answer.results))
        .with(rate_limit_headers(answer))
    }

    /// A request that a closed failure verdict rejects.
    pub(crate) fn failure_closed(status: RejectStatus, grpc: bool) -> Self {
        const DETAIL: &str = "The rate limiter could not be asked. Try again shortly.";
        let problem = Problem::temporary_reduced_capacity(status.code(), DETAIL);
        Self::new(status, FAILURE_CLOSED, &problem, grpc.then(|| DETAIL.to_owned()))
            .retry_after(Some(FAILURE_RETRY_AFTER_S))
    }

    /// For a gRPC client the proxy makes the body its `grpc-message` and sets the content type itself.
    fn new(status: RejectStatus, reason: &str, problem: &Problem, grpc_message: Option<String>) -> Self {
        let mut headers = vec![(header::REASON, HeaderValue::new(reason))];
        if grpc_message.is_none() {
            headers.push(("content-type", HeaderValue::new(Problem::CONTENT_TYPE)));
        }
        Self {
            status,
            headers,
            body: grpc_message.unwrap_or_else(|| problem.to_json()),
            grpc_status: GrpcStatus::Unavailable,
            details: "sluicegate_failure_closed",
        }
    }

    fn retry_after(self, seconds: Option<u64>) -> Self {
        self.with(seconds.map(|seconds| (header::RETRY_AFTER, HeaderValue::from(seconds))))
    }

    fn with(mut self, headers: impl IntoIterator<Item = (&'static str, HeaderValue)>) -> Self {
        self.headers.extend(headers);
        self
    }
}

/// The limits that denied, by the names that `RateLimit-Policy` gives them: with their policy where there are several
/// policies.
fn denying(results: &[LimitResult]) -> Vec<String> {
    let enforced = || results.iter().filter(|result| !result.shadow);
    let mut policies = enforced().map(|result| &result.policy);
    let first = policies.next();
    let several = policies.any(|policy| Some(policy) != first);
    let name = |result: &LimitResult| {
        let name = if several { format!("{}.{}", result.policy, result.limit) } else { result.limit.clone() };
        HeaderValue::new(&name).as_str().to_owned()
    };
    enforced().filter(|result| !result.allowed).map(name).collect()
}
