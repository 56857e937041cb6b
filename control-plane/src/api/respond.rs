//! Every status that the service answers with is chosen here.

use axum::{
    body::Body,
    extract::rejection::FailedToBufferBody,
    http::{
        HeaderValue, StatusCode,
        header::{CONTENT_TYPE, HeaderName, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use sluicegate_wire::{CheckAnswer, Problem, header};

use super::{MAX_BODY_BYTES, MAX_CHECKS, admin::AdminError};
use crate::{
    limiter::{CheckError, LeaseError},
    store::StoreError,
};

/// The answer to checks that were decided: 200, or 429 when one was denied.
pub(super) fn answer(answer: &CheckAnswer) -> Response {
    let status = if answer.allowed { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS };
    // A struct of strings, numbers and flags has nothing that JSON can't hold.
    let body = serde_json::to_vec(answer).unwrap_or_default();
    let mut response = respond(status, HeaderValue::from_static("application/json"), body);
    let mut add = |name, value: Option<String>| {
        // Only printable ASCII comes from `wire`.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    };
    add(RETRY_AFTER, header::retry_after(&answer.results).map(|seconds| seconds.to_string()));
    add(HeaderName::from_static(header::RATE_LIMIT), header::rate_limit(&answer.results));
    add(HeaderName::from_static(header::RATE_LIMIT_POLICY), header::rate_limit_policy(&answer.results));
    response
}

/// The longest detail of a problem, in characters.
const MAX_DETAIL_CHARS: usize = 500;

/// Why a request got no answer to its question; the text says what to do about it.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("there is nothing at this path")]
    NotFound,
    #[error("this path is there, but not for this method; the Allow header names those that are")]
    MethodNotAllowed,
    #[error("this path needs a token; send it once, as Authorization: Bearer TOKEN")]
    NoToken,
    #[error("the token is none of those that are allowed here")]
    WrongToken,
    #[error("a page of another site may not ask here")]
    CrossSite,
    #[error(
        "without a token this listener answers only as localhost or an IP address, so that no page can reach it by a name \
         of its own; set admin.token, or use one of those"
    )]
    ForeignHost,
    #[error("there are as many streams of events as there may be; close a page that shows them")]
    TooManyStreams,
    #[error("there are as many connections as there may be; close some, or raise max_connections")]
    TooManyConnections,
    #[error("{}: must be given once, as a whole number of milliseconds, or left out", header::TIMEOUT_MS)]
    TimeLeft,
    #[error("{}", body_text(.0))]
    Body(FailedToBufferBody),
    #[error("{}", large_body_text())]
    LargeBody,
    #[error("the request has no body")]
    NoBody,
    #[error("the body did not arrive in time")]
    SlowBody,
    #[error("the body is a list; send an object with the fields that /openapi.json describes")]
    List,
    #[error("the body is not JSON: {0}")]
    Json(serde_json::Error),
    #[error("{}{error}", field(.path))]
    Fields { path: String, error: serde_json::Error },
    #[error("checks: there are {0}, the most is {MAX_CHECKS}; send several requests")]
    TooManyChecks(usize),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error(transparent)]
    Lease(#[from] LeaseError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error(
        "refunds are off, since other machines can reach this listener without a token; set a token, or refunds: true to \
             allow them"
    )]
    RefundsOff,
    #[error(
        "leases are off, as refunds are, since other machines can reach this listener without a token; set a token, or \
             refunds: true to allow both"
    )]
    LeasesOff,
    #[error("the service is about to stop")]
    Stopping,
    #[error("{error}{servers}")]
    NotReady { error: StoreError, servers: String },
}

impl Refusal {
    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::TimeLeft | Self::NoBody | Self::Json(_) => StatusCode::BAD_REQUEST,
            Self::NotFound
            | Self::Check(CheckError::UnknownPolicy { .. })
            | Self::Lease(LeaseError::UnknownPolicy { .. }) => StatusCode::NOT_FOUND,
            Self::Admin(error) => error.status(),
            Self::NoToken | Self::WrongToken => StatusCode::UNAUTHORIZED,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::SlowBody => StatusCode::REQUEST_TIMEOUT,
            Self::LargeBody | Self::Body(FailedToBufferBody::LengthLimitError(_)) | Self::TooManyChecks(_) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::RefundsOff | Self::LeasesOff | Self::CrossSite | Self::ForeignHost => StatusCode::FORBIDDEN,
            Self::Fields { .. }
            | Self::List
            | Self::Check(CheckError::OtherCharge)
            | Self::Lease(LeaseError::Unleasable { .. }) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Check(CheckError::Store(_))
            | Self::Lease(LeaseError::Store(_))
            | Self::Stopping
            | Self::NotReady { .. }
            | Self::TooManyConnections
            | Self::TooManyStreams => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = problem(self.status(), &self.to_string());
        // RFC 6750, section 3: no error code for who presented nothing.
        let challenge = match self {
            Self::NoToken => Some("Bearer"),
            Self::WrongToken => Some("Bearer error=\"invalid_token\""),
            _ => None,
        };
        if let Some(challenge) = challenge {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        response
    }
}

/// The answer when the code that should have made one panicked; the panic itself is in the log.
pub(super) fn panicked() -> Response {
    problem(StatusCode::INTERNAL_SERVER_ERROR, "a fault in the service; its log says more")
}

fn problem(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or_default();
    // A caller's own text comes back in it, and may be as long as a body.
    let detail: String = detail.chars().take(MAX_DETAIL_CHARS).collect();
    let body = Problem::plain(status.as_u16(), title, detail).to_json();
    respond(status, HeaderValue::from_static(Problem::CONTENT_TYPE), body)
}

fn respond(status: StatusCode, content_type: HeaderValue, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}

fn body_text(failed: &FailedToBufferBody) -> String {
    match failed {
        FailedToBufferBody::LengthLimitError(_) => large_body_text(),
        other => format!("the body could not be read: {other}"),
    }
}

fn large_body_text() -> String {
    format!("the body is over {MAX_BODY_BYTES} bytes; send several requests")
}

/// The path of a field before what is wrong with it; the body as a whole has none.
fn field(path: &str) -> String {
    if path == "." { String::new() } else { format!("{path}: ") }
}
