//! The question to the service.

use sluicegate_wire::header;

use crate::{Asked, HeaderValue, Request, Timeout, config::Service};

/// One `POST /v1/check`, ready to send.
#[derive(Debug)]
pub struct Callout {
    /// Headers, pseudo-headers first.
    pub headers: Vec<(String, HeaderValue)>,
    /// The body: a [`CheckRequest`](sluicegate_wire::CheckRequest) as JSON.
    pub body: Vec<u8>,
    /// How long to wait for the answer.
    pub timeout: Timeout,
    /// What judging the answer needs.
    pub asked: Asked,
}

/// The longest request id worth copying, in bytes.
const MAX_ID_BYTES: usize = 128;

impl Callout {
    /// The callout that asks this about a request.
    #[must_use]
    pub fn build(service: &Service, asked: Asked, request: &dyn Request) -> Self {
        Self {
            headers: with_trace(headers(service, "/v1/check", asked.timeout), request),
            // A struct of names, strings and numbers has nothing that JSON can't hold, so the fallback never shows; if
            // it did, the service would refuse the empty body and the failure verdict would hold.
            body: serde_json::to_vec(&asked.question).unwrap_or_default(),
            timeout: asked.timeout,
            asked,
        }
    }
}

/// What every callout to the service says.
pub(crate) fn headers(service: &Service, path: &str, timeout: Timeout) -> Vec<(String, HeaderValue)> {
    let mut headers: Vec<(String, HeaderValue)> = [
        (":method", "POST"),
        (":path", path),
        (":authority", &service.authority),
        ("content-type", "application/json"),
        // Only where nothing reached the service, so that nothing is charged twice, and inside the same timeout.
        ("x-envoy-retry-on", "connect-failure,refused-stream"),
        ("x-envoy-max-retries", "1"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), HeaderValue::new(value)))
    .collect();
    headers.push((header::TIMEOUT_MS.to_owned(), HeaderValue::from(u64::from(timeout.service_ms()))));
    headers.extend(service.headers.iter().map(|(name, value)| (name.as_str().to_owned(), value.clone())));
    headers
}

fn with_trace(mut headers: Vec<(String, HeaderValue)>, request: &dyn Request) -> Vec<(String, HeaderValue)> {
    let sent = |name| request.headers().get(name).single();
    let traceparent = sent("traceparent").filter(|value| is_traceparent(value));
    for (name, value) in [("traceparent", traceparent), ("x-request-id", sent("x-request-id"))] {
        if let Some(value) = value.and_then(|value| HeaderValue::printable(value, MAX_ID_BYTES)) {
            headers.push((name.to_owned(), value));
        }
    }
    headers
}

/// `version-traceid-parentid-flags` in lower-case hex (W3C Trace Context section 3.2); later versions may append more.
fn is_traceparent(value: &[u8]) -> bool {
    let mut fields = value.split(|byte| *byte == b'-');
    let mut hex = |length: usize| {
        fields
            .next()
            .filter(|field| field.len() == length && field.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')))
    };
    let nonzero = |field: &[u8]| field.iter().any(|digit| *digit != b'0');
    let (Some(version), Some(trace), Some(parent), Some(_flags)) = (hex(2), hex(32), hex(16), hex(2)) else {
        return false;
    };
    version != b"ff" && nonzero(trace) && nonzero(parent) && (version != b"00" || fields.next().is_none())
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn only_a_well_formed_traceparent_travels() {
        let check = |value: &str, expected| assert_eq!(is_traceparent(value.as_bytes()), expected, "{value:?}");
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", true);
        check("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", true);
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", false);
        check("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false);
        check("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false);
        check("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false);
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false);
        check("00-4bf92f35", false);
        check("", false);
    }
}
