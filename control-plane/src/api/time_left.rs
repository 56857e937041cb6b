//! How long the caller still waits.

use std::time::Duration;

use axum::http::HeaderMap;
use sluicegate_wire::header::TIMEOUT_MS;

use super::respond::Refusal;

/// The caller's time left, from `x-sluicegate-timeout-ms`; none when the caller doesn't say.
///
/// # Errors
/// When it is there but isn't one whole number: to guess would be to wait longer than the caller, or not at all.
pub(super) fn time_left(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let mut values = headers.get_all(TIMEOUT_MS).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => parse(value.as_bytes()).map(Some).ok_or(Refusal::TimeLeft),
        (Some(_), Some(_)) => Err(Refusal::TimeLeft),
    }
}

fn parse(value: &[u8]) -> Option<Duration> {
    // `u64::from_str` would take a sign as well.
    if !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok().map(Duration::from_millis)
}
