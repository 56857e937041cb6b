//! The one place that builds a rejection.

use sluicegate_wire::{CheckAnswer, Problem, header};

use crate::{HeaderLine, HeaderName, HeaderValue, RejectStatus, RejectStyle, Style, VerdictLabel};

/// A response that the filter makes itself.
#[derive(Debug)]
pub struct Rejection {
    /// The status.
    pub status: RejectStatus,
    /// Headers.
    pub headers: Vec<HeaderLine>,
    /// The body: problem details or what the rule says, or for a gRPC client its status message.
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

/// The wait after a failure, in seconds: long enough not to hammer, short enough not to prolong an outage.
const FAILURE_RETRY_AFTER_S: u64 = 1;

impl Rejection {
    /// A request that a limit denied, in the style of the rule that it is of.
    pub(crate) fn denied(answer: &CheckAnswer, label: VerdictLabel, style: &Style, grpc: bool) -> Self {
        let limits = header::denying(&answer.results);
        let message = || format!("{}: {}", label.reason(), limits.join(", "));
        let message = grpc.then(message);
        let problem = Problem::quota_exceeded(style.reject.status.code(), limits);
        Self::styled(label, &style.reject, message, &problem)
            .retry_after(header::retry_after(&answer.results))
            .with(style.limits.lines(&answer.results))
            .with(style.reject.headers.iter().filter_map(added))
    }

    /// A request without the value that a limit of the rule demands. Waiting doesn't help.
    pub(crate) fn missing_key(style: &Style, grpc: bool) -> Self {
        const DETAIL: &str = "The request lacks what it would be counted by.";
        let message = grpc.then(|| DETAIL.to_owned());
        let problem = Problem::plain(style.reject.status.code(), "Missing key", DETAIL);
        Self::styled(VerdictLabel::MissingKey, &style.reject, message, &problem)
            .with(style.reject.headers.iter().filter_map(added))
    }

    fn styled(label: VerdictLabel, style: &RejectStyle, grpc_message: Option<String>, problem: &Problem) -> Self {
        let rejection = match grpc_message {
            Some(message) => Self::new(style.status, label, message),
            None => {
                let (body, content_type) = match &style.body {
                    Some(body) => (body.clone(), "text/plain; charset=utf-8"),
                    None => (problem.to_json(), Problem::CONTENT_TYPE),
                };
                let own = style.headers.iter().find(|(name, _)| name.as_str() == CONTENT_TYPE);
                let content_type = own.map_or_else(|| HeaderValue::new(content_type), |(_, value)| value.clone());
                Self::http(style.status, label, body, content_type)
            }
        };
        Self { grpc_status: GrpcStatus::ResourceExhausted, ..rejection }
    }

    /// A request that a closed failure verdict rejects.
    pub(crate) fn failure_closed(status: RejectStatus, grpc: bool) -> Self {
        const DETAIL: &str = "The rate limiter could not be asked. Try again shortly.";
        Self::failure(status, VerdictLabel::FailureClosed, DETAIL, grpc).retry_after(Some(FAILURE_RETRY_AFTER_S))
    }

    /// A request for which this proxy's own buckets don't have enough.
    pub(crate) fn failure_local(wait_ms: Option<u64>, grpc: bool) -> Self {
        const DETAIL: &str = "The rate limiter could not be asked, and this proxy admits no more for now.";
        Self::failure(RejectStatus::TOO_MANY_REQUESTS, VerdictLabel::FailureLocalDenied, DETAIL, grpc)
            .retry_after(wait_ms.map(header::whole_seconds))
    }

    fn failure(status: RejectStatus, label: VerdictLabel, detail: &'static str, grpc: bool) -> Self {
        if grpc {
            return Self::new(status, label, detail.to_owned());
        }
        let problem = Problem::temporary_reduced_capacity(status.code(), detail);
        Self::http(status, label, problem.to_json(), HeaderValue::new(Problem::CONTENT_TYPE))
    }

    fn http(status: RejectStatus, label: VerdictLabel, body: String, content_type: HeaderValue) -> Self {
        Self::new(status, label, body).with([(CONTENT_TYPE.into(), content_type)])
    }

    /// For a gRPC client the proxy makes the body its `grpc-message` and sets the content type itself.
    fn new(status: RejectStatus, label: VerdictLabel, body: String) -> Self {
        Self {
            status,
            headers: vec![(header::REASON.into(), HeaderValue::new(label.reason()))],
            body,
            grpc_status: GrpcStatus::Unavailable,
            details: label.details(),
        }
    }

    fn retry_after(self, seconds: Option<u64>) -> Self {
        self.with(seconds.map(|seconds| (header::RETRY_AFTER.into(), HeaderValue::from(seconds))))
    }

    pub(crate) fn with(mut self, headers: impl IntoIterator<Item = HeaderLine>) -> Self {
        self.headers.extend(headers);
        self
    }
}

const CONTENT_TYPE: &str = "content-type";

/// A header of a style; its content type goes with the body.
fn added((name, value): &(HeaderName, HeaderValue)) -> Option<HeaderLine> {
    (name.as_str() != CONTENT_TYPE).then(|| (name.as_str().to_owned().into(), value.clone()))
}
