//! From an answer to descriptors' statuses.

use sluicegate_lua::{Every, Policy, Rule};
use sluicegate_wire::{CheckAnswer, LimitResult, decisive, header, shadow_denial};

use super::{
    asked::{Ask, Asked},
    message::{Code, DescriptorStatus, Duration, HeaderValue, RateLimit, RateLimitResponse, Unit},
};

/// The answer to a call: one status for each descriptor, and the headers for the response to the proxy's client.
pub(super) fn response(asked: &Asked<'_>, answer: &CheckAnswer) -> RateLimitResponse {
    RateLimitResponse {
        overall_code: code(answer.allowed).into(),
        statuses: asked.descriptors.iter().map(|ask| status(*ask, answer)).collect(),
        response_headers_to_add: headers(&answer.results),
    }
}

const fn code(allowed: bool) -> Code {
    if allowed { Code::Ok } else { Code::OverLimit }
}

fn status(ask: Ask<'_>, answer: &CheckAnswer) -> DescriptorStatus {
    let ok = DescriptorStatus { code: Code::Ok.into(), ..DescriptorStatus::default() };
    match ask {
        Ask::Unmatched | Ask::Refund => ok,
        Ask::Unlimited => DescriptorStatus { limit_remaining: u32::MAX, ..ok },
        Ask::Check(check, policy) => {
            let results = answer.results.iter().filter(|result| result.check == check);
            let denied = results.clone().any(|result| !result.shadow && !result.allowed);
            // A descriptor in shadow is shown as what it would be.
            let results: Vec<_> = results.map(|result| LimitResult { shadow: false, ..result.clone() }).collect();
            let Some([(_, _), (_, remaining), (_, reset)]) = header::x_rate_limit(&results) else { return ok };
            DescriptorStatus {
                code: code(!denied).into(),
                current_limit: decisive(&results).and_then(|result| limit(policy, result)),
                limit_remaining: u32::try_from(remaining).unwrap_or(u32::MAX),
                duration_until_reset: Some(Duration { seconds: i64::try_from(reset).unwrap_or(i64::MAX) }),
            }
        }
    }
}

/// A limit as so many requests in one unit; none where it isn't one, such as a bucket that fills in 10 s.
fn limit(policy: &Policy, result: &LimitResult) -> Option<RateLimit> {
    let limit = policy.limits().iter().find(|limit| limit.name.as_str() == result.limit)?;
    let unit = match &limit.rule {
        Rule::Bucket(_) => unit_of(result.window_ms)?,
        // The month at hand has 28 to 31 days, a day up to 25 hours.
        Rule::Quota(quota) => match quota.every() {
            Every::Minute => Unit::Minute,
            Every::Hour => Unit::Hour,
            Every::Day => Unit::Day,
            Every::Week => Unit::Week,
            Every::Month => Unit::Month,
        },
    };
    let requests_per_unit = u32::try_from(result.capacity).ok()?;
    Some(RateLimit { requests_per_unit, unit: unit.into(), name: format!("{}.{}", result.policy, result.limit) })
}

const fn unit_of(window_ms: u64) -> Option<Unit> {
    match window_ms {
        1_000 => Some(Unit::Second),
        60_000 => Some(Unit::Minute),
        3_600_000 => Some(Unit::Hour),
        86_400_000 => Some(Unit::Day),
        604_800_000 => Some(Unit::Week),
        _ => None,
    }
}

fn headers(results: &[LimitResult]) -> Vec<HeaderValue> {
    let reason = decisive(results).filter(|result| !result.allowed).map(|result| result.reason.as_str().to_owned());
    let shadow = shadow_denial(results).map(|result| result.reason.as_str().to_owned());
    let headers = [
        (header::RETRY_AFTER, header::retry_after(results).map(|seconds| seconds.to_string())),
        (header::RATE_LIMIT, header::rate_limit(results)),
        (header::RATE_LIMIT_POLICY, header::rate_limit_policy(results)),
        (header::REASON, reason),
        (header::SHADOW, shadow),
    ];
    headers.into_iter().filter_map(|(key, value)| Some(HeaderValue { key: key.to_owned(), value: value? })).collect()
}
