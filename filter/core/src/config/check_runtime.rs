//! What the filter does between question and verdict, from as written to as applied.

use std::rc::Rc;

use super::{
    ConfigError,
    forms::Whole,
    place::Place,
    raw::RawConfig,
    raw_runtime::{RawBreaker, RawCharge, RawDenyCache, RawLabels, RawLimitHeader, RawMetrics, RawReject},
};
use crate::{
    BreakerConfig, DenyCacheConfig, HeaderName, HeaderValue, LabelForm, LimitHeaders, OnlyStatus, RejectStatus,
    RejectStyle, Style,
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
    pub(super) fn new(raw: &RawConfig<'_>) -> Result<Self, ConfigError> {
        let reject = match &raw.reject {
            Some(raw) => reject(&Place::Top.field("reject"), raw)?,
            None => RejectStyle::default(),
        };
        let style = Style { reject, limits: limit_headers(raw.headers.as_deref()) };
        Ok(Self { shadow: raw.shadow.unwrap_or(false), style: Rc::new(style) })
    }

    pub(super) fn style(&self, place: &Place<'_>, raw: Option<&RawReject<'_>>) -> Result<Rc<Style>, ConfigError> {
        let Some(raw) = raw else { return Ok(Rc::clone(&self.style)) };
        Ok(Rc::new(Style { reject: reject(&place.field("reject"), raw)?, limits: self.style.limits }))
    }
}

fn reject(place: &Place<'_>, raw: &RawReject<'_>) -> Result<RejectStyle, ConfigError> {
    let mut headers = Vec::new();
    for (name, value) in raw.headers.iter().flat_map(|headers| &headers.0) {
        headers.push(reject_header(&place.field("headers").field(name), name, value.0)?);
    }
    Ok(RejectStyle { status: reject_status(raw.status), body: raw.body.map(str::to_owned), headers })
}

fn reject_header(place: &Place<'_>, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ConfigError> {
    let checked: HeaderName = name.parse().map_err(|error: HeaderNameError| place.wrong(error.to_string()))?;
    let text = checked.as_str();
    if RESERVED.contains(&text) || text.starts_with("x-ratelimit-") || is_own(text.as_bytes()) {
        return Err(place.wrong("the filter or the proxy sets this header itself"));
    }
    if value.chars().any(char::is_control) {
        return Err(place.wrong("a header value has no control characters, such as a line's end"));
    }
    Ok((checked, HeaderValue::new(value)))
}

fn limit_headers(raw: Option<&[RawLimitHeader]>) -> LimitHeaders {
    let Some(words) = raw else { return LimitHeaders::default() };
    let has = |wanted: RawLimitHeader| words.contains(&wanted);
    LimitHeaders { rate_limit: has(RawLimitHeader::RateLimit), x_rate_limit: has(RawLimitHeader::XRateLimit) }
}

pub(super) fn breaker(raw: &RawBreaker) -> BreakerConfig {
    let default = BreakerConfig::default();
    BreakerConfig {
        failures: raw.failures.and_then(|number| u32::try_from(number.0).ok()).unwrap_or(default.failures),
        open_for: raw.open_for.unwrap_or(default.open_for),
    }
}

pub(super) fn deny_cache(raw: &RawDenyCache) -> DenyCacheConfig {
    let default = DenyCacheConfig::default();
    DenyCacheConfig {
        max_entries: raw.max_entries.and_then(|number| usize::try_from(number.0).ok()).unwrap_or(default.max_entries),
        max_life: raw.max_life.unwrap_or(default.max_life),
    }
}

pub(super) const fn labels(raw: &RawMetrics) -> LabelForm {
    match raw.labels {
        None | Some(RawLabels::Envoy) => LabelForm::Envoy,
        Some(RawLabels::Istio) => LabelForm::Istio,
    }
}

pub(super) fn only_status(place: &Place<'_>, raw: Option<&RawCharge>) -> Result<Option<OnlyStatus>, ConfigError> {
    let Some(raw) = raw else { return Ok(None) };
    if raw.only_status.is_empty() {
        let problem = "list the statuses that stay charged, such as [401, 403]";
        return Err(place.field("charge").field("only_status").wrong(problem));
    }
    Ok(Some(raw.only_status.iter().filter_map(|status| u16::try_from(status.0).ok()).collect()))
}

pub(super) fn reject_status(raw: Option<Whole<400, 599>>) -> RejectStatus {
    raw.and_then(|status| RejectStatus::new(u16::try_from(status.0).ok()?).ok()).unwrap_or_default()
}
