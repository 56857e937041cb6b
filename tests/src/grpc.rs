//! gRPC as the tests speak it: unary calls of messages that are plain bytes.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use axum::{
    body::Body,
    http::{HeaderMap, Response},
};
use http_body_util::{BodyExt as _, Full};

/// What ended a call, and what came before.
#[derive(Clone, Debug)]
pub struct GrpcAnswer {
    /// The HTTP status.
    pub http_status: u16,
    /// The headers; those of an answer of trailers alone are the trailers too.
    pub headers: HeaderMap,
    /// The message, none in an answer of trailers alone.
    pub message: Option<Vec<u8>>,
    /// `grpc-status`.
    pub status: u32,
    /// `grpc-message`, as it was sent; empty when it wasn't.
    pub status_message: String,
}

/// Calls a method at a server of 127.0.0.1 over HTTP/2 ("gRPC over HTTP2").
///
/// # Errors
/// When what comes back is no gRPC.
pub async fn grpc_call(port: u16, method: &str, headers: &[(&str, &str)], message: &[u8]) -> Result<GrpcAnswer> {
    let http =
        reqwest::Client::builder().no_proxy().http2_prior_knowledge().timeout(Duration::from_secs(30)).build()?;
    let mut request = http.post(format!("http://127.0.0.1:{port}{method}")).body(framed(message));
    for (name, value) in [("content-type", "application/grpc"), ("te", "trailers")].iter().chain(headers) {
        request = request.header(*name, *value);
    }
    let (head, body) = Response::from(request.send().await?).into_parts();
    let body = body.collect().await?;
    let trailers = body.trailers().cloned();
    let body = body.to_bytes();
    let ending = trailers.as_ref().unwrap_or(&head.headers);
    let text = |name| ending.get(name).map(|value| value.to_str().map(str::to_owned)).transpose();
    Ok(GrpcAnswer {
        http_status: head.status.as_u16(),
        message: if body.is_empty() { None } else { Some(unframed(&body)?) },
        status: text("grpc-status")?.context("no grpc-status")?.parse()?,
        status_message: text("grpc-message")?.unwrap_or_default(),
        headers: head.headers,
    })
}

/// An answer of one message and the status OK.
///
/// # Panics
/// Never: the headers are good.
#[must_use]
pub fn grpc_ok(message: &[u8]) -> Response<Body> {
    let trailers = HeaderMap::from_iter([("grpc-status".parse().unwrap(), "0".parse().unwrap())]);
    let body = Full::new(framed(message).into()).with_trailers(async { Some(Ok(trailers)) });
    Response::builder().header("content-type", "application/grpc").body(Body::new(body)).unwrap()
}

/// Not compressed, the length, the message.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message");
    [&[0], length.to_be_bytes().as_slice(), message].concat()
}

fn unframed(body: &[u8]) -> Result<Vec<u8>> {
    let (prefix, message) = body.split_at_checked(5).context("no whole prefix")?;
    ensure!(prefix == &framed(message)[..5], "not one message: {body:?}");
    Ok(message.to_vec())
}
