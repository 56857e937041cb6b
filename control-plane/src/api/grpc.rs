//! gRPC calls of one question and one answer, over the HTTP that is there already.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    extract::Request,
    http::{HeaderMap, StatusCode, header::CONTENT_TYPE},
    middleware::Next,
    response::Response,
};
use prost::Message;
use sluicegate_wire::Problem;
use tonic::{Code, Status, server::Grpc};
use tonic_prost::ProstCodec;
use tower::service_fn;

use super::{body, mark, respond::Refusal};

/// Reads a call's message within the bounds of every request's body, and answers with a message or a status.
pub(super) async fn unary<Q, A, F>(request: Request, answer: impl FnOnce(Q) -> F) -> Response
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
    F: Future<Output = Result<A, Status>>,
{
    let (head, body) = request.into_parts();
    let body = match body::read(Request::from_parts(head.clone(), body)).await {
        Ok(body) => body,
        Err(refusal) => return status(&refusal).into_http(),
    };
    let mut answer = Some(answer);
    let call = service_fn(|call: tonic::Request<Q>| {
        let answer = answer.take();
        async move {
            // A call has one message: tonic asks once.
            let answer = answer.ok_or_else(|| Status::internal("a call is answered once"))?;
            answer(call.into_inner()).await.map(tonic::Response::new)
        }
    });
    Grpc::new(ProstCodec::<A, Q>::default())
        .unary(call, Request::from_parts(head, Body::from(body)))
        .await
        .map(Body::new)
}

/// What a refusal is in gRPC. A caller that may ask again as it is gets `UNAVAILABLE`.
pub(super) fn status(refusal: &Refusal) -> Status {
    let code = match refusal.status() {
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        StatusCode::REQUEST_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::PAYLOAD_TOO_LARGE => Code::ResourceExhausted,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::UNPROCESSABLE_ENTITY => Code::FailedPrecondition,
        _ => Code::InvalidArgument,
    };
    Status::new(code, refusal.to_string())
}

/// Answers calls in gRPC where nobody did: clients make no sense of a problem, and say of a missing token that the
/// protocol is broken.
pub(super) async fn speak(request: Request, next: Next) -> Response {
    let is_call = is_grpc(request.headers());
    let response = next.run(request).await;
    if !is_call || is_grpc(response.headers()) {
        return response;
    }
    let (head, body) = response.into_parts();
    let code = match head.status {
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => Code::Internal,
    };
    let body = to_bytes(body, MAX_PROBLEM_BYTES).await.unwrap_or_default();
    let problem = serde_json::from_slice::<Problem>(&body);
    let message = problem.map_or_else(|_| head.status.to_string(), |problem| problem.detail.into_owned());
    mark::marked(Status::new(code, message).into_http())
}

/// Far above what a problem has.
const MAX_PROBLEM_BYTES: usize = 16 * 1024;

fn is_grpc(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The caller's time left, from `grpc-timeout`; none when the caller doesn't say.
///
/// # Errors
/// When it isn't one number of at most 8 digits and a unit ("Requests" in gRPC's `PROTOCOL-HTTP2.md`).
pub(super) fn time_left(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let mut values = headers.get_all(TIMEOUT).iter();
    let read = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => parse(value.as_bytes()),
        (Some(_), Some(_)) => None,
    };
    read.map(Some).ok_or_else(|| Status::invalid_argument(format!("{TIMEOUT}: must be like 20m, that is 20 ms")))
}

const TIMEOUT: &str = "grpc-timeout";

fn parse(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    // `u64::from_str` would take a sign as well.
    if digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number: u64 = std::str::from_utf8(digits).ok()?.parse().ok()?;
    match unit {
        b'H' => Some(Duration::from_secs(number * 3600)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'S' => Some(Duration::from_secs(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'n' => Some(Duration::from_nanos(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_a_number_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(Duration::from_secs(3600))),
            ("2M", Some(Duration::from_secs(120))),
            ("3S", Some(Duration::from_secs(3))),
            ("20m", Some(Duration::from_millis(20))),
            ("99999999H", Some(Duration::from_secs(99_999_999 * 3600))),
            ("5u", Some(Duration::from_micros(5))),
            ("0n", Some(Duration::ZERO)),
            ("", None),
            ("m", None),
            ("20", None),
            ("20s", None),
            ("+20m", None),
            ("1.5S", None),
            ("100000000n", None),
        ] {
            assert_eq!(parse(text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn a_timeout_is_given_once_or_not_at_all() {
        let mut headers = HeaderMap::new();
        assert_eq!(time_left(&headers).unwrap(), None);
        headers.append(TIMEOUT, "20m".parse().unwrap());
        assert_eq!(time_left(&headers).unwrap(), Some(Duration::from_millis(20)));
        headers.append(TIMEOUT, "20m".parse().unwrap());
        let status = time_left(&headers).unwrap_err();
        assert_eq!(
            (status.code(), status.message()),
            (Code::InvalidArgument, "grpc-timeout: must be like 20m, that is 20 ms")
        );
    }
}
