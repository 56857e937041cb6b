//! What the filter does between question and verdict, from as written to as applied.

use std::{ops::RangeInclusive, rc::Rc};

use super::{
    ConfigError,
    raw::Object,
    raw_runtime::{RawBreaker, RawCharge, RawDenyCache, RawMetrics, RawReject},
};
use crate::{
    BreakerConfig, DenyCacheConfig, HeaderName, HeaderValue, LabelForm, LimitHeaders, OnlyStatus, RejectStatus,
    RejectStyle, Style,
    failure::RejectStatusError,
    header::{HeaderNameError, is_own},
};

/// Headers of a rejection that the filter sets, or that describe the body and the connection.
const RESERVED: [&str; 9] = [
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "retry-after",
    "ratelimit",
    "ratelimit-policy",
    "host",
    "grpc-status",
];

/// What holds for every rule that doesn't say otherwise.
pub(super) struct Defaults {
    pub(super) shadow: bool,
    style: Rc<Style>,
}

impl Defaults {
    pub(super) fn new(shadow: bool, reject: RawReject, headers: Option<Vec<String>>) -> Result<Self, ConfigError> {
        let style = Style { reject: self::reject("reject", reject)?, limits: limit_headers(headers)? };
        Ok(Self { shadow, style: Rc::new(style) })
    }

    pub(super) fn style(&self, path: &str, reject: Option<Object<RawReject>>) -> Result<Rc<Style>, ConfigError> {
        let Some(Object(reject)) = reject else { return Ok(Rc::clone(&self.style)) };
        let reject = self::reject(&format!("{path}.reject"), reject)?;
        Ok(Rc::new(Style { reject, limits: self.style.limits }))
    }
}

fn reject(path: &str, raw: RawReject) -> Result<RejectStyle, ConfigError> {
    let status = raw.status.map(|status| reject_status(&format!("{path}.status"), status)).transpose()?;
    let header = |(name, value): (&String, &super::raw::SecretText)| reject_header(path, name, &value.0);
    let headers = raw.headers.iter().map(header).collect::<Result<_, _>>()?;
    Ok(RejectStyle { status: status.unwrap_or_default(), body: raw.body, headers })
}

fn reject_header(path: &str, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ConfigError> {
    let field = |problem: &str| ConfigError::field(format!("{path}.headers.{name}"), problem);
    let checked: HeaderName = name.parse().map_err(|error: HeaderNameError| field(&error.to_string()))?;
    let text = checked.as_str();
    if RESERVED.contains(&text) || text.starts_with("x-ratelimit-") || is_own(text.as_bytes()) {
        return Err(field("the filter or the proxy sets this header itself"));
    }
    if value.chars().any(char::is_control) {
        return Err(field("a header value has no control characters, such as a line's end"));
    }
    Ok((checked, HeaderValue::new(value)))
}

fn limit_headers(raw: Option<Vec<String>>) -> Result<LimitHeaders, ConfigError> {
    let Some(words) = raw else { return Ok(LimitHeaders::default()) };
    let mut headers = LimitHeaders { rate_limit: false, x_rate_limit: false };
    for (index, word) in words.iter().enumerate() {
        match word.as_str() {
            "rate_limit" => headers.rate_limit = true,
            "x_rate_limit" => headers.x_rate_limit = true,
            _ => return Err(ConfigError::field(format!("headers[{index}]"), "use rate_limit or x_rate_limit")),
        }
    }
    Ok(headers)
}

pub(super) fn breaker(raw: &RawBreaker) -> Result<BreakerConfig, ConfigError> {
    let mut breaker = BreakerConfig::default();
    if let Some(failures) = raw.failures {
        breaker.failures = u32::try_from(whole("breaker.failures", failures, 0..=1_000_000)?).unwrap_or(u32::MAX);
    }
    breaker.open_for = raw.open_for.unwrap_or(breaker.open_for);
    Ok(breaker)
}

pub(super) fn deny_cache(raw: &RawDenyCache) -> Result<DenyCacheConfig, ConfigError> {
    let mut cache = DenyCacheConfig::default();
    if let Some(entries) = raw.max_entries {
        let entries = whole("deny_cache.max_entries", entries, 0..=1_000_000)?;
        cache.max_entries = usize::try_from(entries).unwrap_or(usize::MAX);
    }
    cache.max_life = raw.max_life.unwrap_or(cache.max_life);
    Ok(cache)
}

pub(super) fn labels(raw: &RawMetrics) -> Result<LabelForm, ConfigError> {
    match raw.labels.as_deref() {
        None | Some("envoy") => Ok(LabelForm::Envoy),
        Some("istio") => Ok(LabelForm::Istio),
        Some(_) => Err(ConfigError::field("metrics.labels", "use envoy or istio")),
    }
}

pub(super) fn only_status(path: &str, raw: Option<Object<RawCharge>>) -> Result<Option<OnlyStatus>, ConfigError> {
    let Some(Object(raw)) = raw else { return Ok(None) };
    let path = format!("{path}.charge.only_status");
    if raw.only_status.is_empty() {
        return Err(ConfigError::field(path, "list the statuses that stay charged, such as [401, 403]"));
    }
    let status = |(index, status): (usize, &f64)| {
        let status = whole(&format!("{path}[{index}]"), *status, 200..=599)?;
        Ok(u16::try_from(status).unwrap_or(u16::MAX))
    };
    raw.only_status.iter().enumerate().map(status).collect::<Result<_, _>>().map(Some)
}

pub(super) fn reject_status(path: &str, status: f64) -> Result<RejectStatus, ConfigError> {
    // A float-to-integer cast saturates, so a fraction or an excess shows as a difference.
    let code = status as u16;
    let known = if f64::from(code) == status { RejectStatus::new(code).ok() } else { None };
    known.ok_or_else(|| ConfigError::field(path, RejectStatusError.to_string()))
}

/// A whole number; a proxy may write it as `5.0`.
pub(super) fn whole(path: &str, number: f64, range: RangeInclusive<u64>) -> Result<u64, ConfigError> {
    let whole = number as u64;
    if whole as f64 == number && range.contains(&whole) {
        return Ok(whole);
    }
    Err(ConfigError::field(path, format!("a whole number from {} to {}", range.start(), range.end())))
}
