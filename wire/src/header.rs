//! Header names and values, the same from the filter and from the service.
//!
//! `RateLimit` and `RateLimit-Policy` follow draft-ietf-httpapi-ratelimit-headers-10; their values are lists of
//! string items with parameters (RFC 9651 sections 3.1, 3.3.3 and 3.1.2).

use std::fmt::Write as _;

use crate::{LimitResult, Reason, decisive};

/// On every answer of the service, with its version: tells its answers from those of something on the way.
pub const MARKER: &str = "x-sluicegate";
/// On a request to the service: the time that the caller still has, in ms.
pub const TIMEOUT_MS: &str = "x-sluicegate-timeout-ms";
/// On an answer made or marked by the filter: why (`over_limit`, `failure_open`, …).
pub const REASON: &str = "x-sluicegate-reason";
/// On a response that a shadow limit would have denied, or that a failure verdict under shadow would have rejected: why,
/// in the words of [`REASON`].
pub const SHADOW: &str = "x-sluicegate-shadow";
/// Seconds until a retry can succeed (RFC 9110 section 10.2.3).
pub const RETRY_AFTER: &str = "retry-after";
/// The state of the decisive limit.
pub const RATE_LIMIT: &str = "ratelimit";
/// The limits that apply.
pub const RATE_LIMIT_POLICY: &str = "ratelimit-policy";
/// The older trio that many clients read: the decisive limit's capacity, …
pub const X_RATE_LIMIT_LIMIT: &str = "x-ratelimit-limit";
/// … its whole tokens, …
pub const X_RATE_LIMIT_REMAINING: &str = "x-ratelimit-remaining";
/// … and the seconds until it is full, or until a ban ends.
pub const X_RATE_LIMIT_RESET: &str = "x-ratelimit-reset";

/// The largest integer a structured field holds (RFC 9651 section 3.3.1): 15 digits.
const MAX_INTEGER: u64 = 999_999_999_999_999;

/// The `Retry-After` of a denial in whole seconds, rounded up, at least 1; none when nothing was denied or when
/// waiting can't help.
#[must_use]
pub fn retry_after(results: &[LimitResult]) -> Option<u64> {
    decisive(results).filter(|result| !result.allowed)?.retry_after_ms.map(whole_seconds)
}

/// The value of `RateLimit`: the decisive limit, its whole tokens and the seconds to one more. None without an
/// enforced limit.
#[must_use]
pub fn rate_limit(results: &[LimitResult]) -> Option<String> {
    let result = decisive(results)?;
    let mut value = String::new();
    item_into(&mut value, result, qualified(results));
    let (remaining, next_ms) = left(result, result.next_ms);
    let _ = write!(value, ";r={};t={}", integer(remaining), integer(next_ms.div_ceil(1000)));
    Some(value)
}

/// The values of `x-ratelimit-limit`, `-remaining` and `-reset`, about the limit that [`rate_limit`] describes.
#[must_use]
pub fn x_rate_limit(results: &[LimitResult]) -> Option<[(&'static str, u64); 3]> {
    let result = decisive(results)?;
    let (remaining, full_ms) = left(result, result.full_ms);
    Some([
        (X_RATE_LIMIT_LIMIT, integer(result.capacity)),
        (X_RATE_LIMIT_REMAINING, integer(remaining)),
        (X_RATE_LIMIT_RESET, integer(full_ms.div_ceil(1000))),
    ])
}

/// The enforced limits that denied, by the names that [`rate_limit_policy`] gives them, in printable ASCII.
#[must_use]
pub fn denying(results: &[LimitResult]) -> Vec<String> {
    let qualified = qualified(results);
    let denied = results.iter().filter(|result| !result.shadow && !result.allowed);
    denied.map(|result| name(result, qualified).collect()).collect()
}

/// The tokens that are left, and the wait to tell. While a ban lasts nothing is left, whatever the limit holds.
fn left(result: &LimitResult, wait_ms: u64) -> (u64, u64) {
    match result.reason {
        Reason::Banned => (0, result.retry_after_ms.unwrap_or(wait_ms)),
        Reason::Ok | Reason::OverLimit | Reason::Never => (result.remaining, wait_ms),
    }
}

/// The value of `RateLimit-Policy`: each enforced limit, its capacity and the seconds it takes to fill. None without
/// an enforced limit.
#[must_use]
pub fn rate_limit_policy(results: &[LimitResult]) -> Option<String> {
    let qualified = qualified(results);
    let mut value = String::new();
    for result in results.iter().filter(|result| !result.shadow) {
        if !value.is_empty() {
            value.push_str(", ");
        }
        item_into(&mut value, result, qualified);
        let _ = write!(value, ";q={};w={}", integer(result.capacity), integer(whole_seconds(result.window_ms)));
    }
    (!value.is_empty()).then_some(value)
}

/// Milliseconds as whole seconds, rounded up, at least 1.
#[must_use]
pub fn whole_seconds(ms: u64) -> u64 {
    ms.div_ceil(1000).max(1)
}

/// Limits of several policies may share a name (`burst`): then each is written `policy.limit`.
fn qualified(results: &[LimitResult]) -> bool {
    let mut policies = results.iter().filter(|result| !result.shadow).map(|result| &result.policy);
    policies.next().is_some_and(|first| policies.any(|policy| policy != first))
}

/// A limit's name, with `?` for all but printable ASCII.
fn name(result: &LimitResult, qualified: bool) -> impl Iterator<Item = char> {
    let parts = if qualified { [result.policy.as_str(), ".", &result.limit] } else { ["", "", &result.limit] };
    let printable = |character| if matches!(character, ' '..='~') { character } else { '?' };
    parts.into_iter().flat_map(str::chars).map(printable)
}

/// A string item (RFC 9651 section 3.3.3): `"` and `\` are escaped.
fn item_into(value: &mut String, result: &LimitResult, qualified: bool) {
    value.push('"');
    for character in name(result, qualified) {
        if matches!(character, '"' | '\\') {
            value.push('\\');
        }
        value.push(character);
    }
    value.push('"');
}

fn integer(number: u64) -> u64 {
    number.min(MAX_INTEGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(policy: &str, limit: &str, remaining: u64) -> LimitResult {
        LimitResult {
            check: 0,
            policy: policy.into(),
            limit: limit.into(),
            allowed: true,
            reason: Reason::Ok,
            capacity: 20,
            window_ms: 1000,
            remaining,
            retry_after_ms: Some(0),
            next_ms: 50,
            full_ms: 150,
            shadow: false,
        }
    }

    fn denied(limit: &str, retry_after_ms: Option<u64>) -> LimitResult {
        LimitResult { allowed: false, reason: Reason::OverLimit, retry_after_ms, ..result("api", limit, 0) }
    }

    #[test]
    fn waits_are_whole_seconds_rounded_up() {
        for (ms, seconds) in [(1, 1), (999, 1), (1000, 1), (1001, 2), (0, 1)] {
            assert_eq!(retry_after(&[denied("a", Some(ms))]), Some(seconds), "{ms} ms");
        }
        assert_eq!(retry_after(&[result("api", "a", 1)]), None);
        assert_eq!(retry_after(&[]), None);
    }

    #[test]
    fn the_longest_wait_decides_and_never_is_longest() {
        let results = [denied("short", Some(10)), denied("long", Some(2_000)), result("api", "passed", 0)];
        assert_eq!(retry_after(&results), Some(2));
        assert_eq!(rate_limit(&results).as_deref(), Some(r#""long";r=0;t=1"#));
        assert_eq!(retry_after(&[denied("long", Some(2_000)), denied("never", None)]), None);
    }

    #[test]
    fn without_a_denial_the_limit_nearest_to_denying_is_shown() {
        let results = [result("api", "burst", 17), result("api", "daily", 4)];
        assert_eq!(rate_limit(&results).as_deref(), Some(r#""daily";r=4;t=1"#));
        assert_eq!(rate_limit_policy(&results).as_deref(), Some(r#""burst";q=20;w=1, "daily";q=20;w=1"#));
    }

    #[test]
    fn during_a_ban_nothing_is_left() {
        let banned = LimitResult { reason: Reason::Banned, remaining: 45, ..denied("day", Some(3_599_000)) };
        assert_eq!(rate_limit(&[banned]).as_deref(), Some(r#""day";r=0;t=3599"#));
    }

    #[test]
    fn limits_of_several_policies_carry_the_policy() {
        let results = [result("login", "burst", 2), result("account", "burst", 1)];
        assert_eq!(rate_limit(&results).as_deref(), Some(r#""account.burst";r=1;t=1"#));
        assert_eq!(rate_limit_policy(&results).as_deref(), Some(r#""login.burst";q=20;w=1, "account.burst";q=20;w=1"#));
    }

    #[test]
    fn shadow_limits_are_never_shown() {
        let shadow = LimitResult { shadow: true, ..denied("shadow", Some(9_000)) };
        assert_eq!(retry_after(std::slice::from_ref(&shadow)), None);
        assert_eq!(rate_limit(std::slice::from_ref(&shadow)), None);
        assert_eq!(rate_limit_policy(std::slice::from_ref(&shadow)), None);
        assert_eq!(rate_limit(&[shadow, result("api", "a", 3)]).as_deref(), Some(r#""a";r=3;t=1"#));
    }

    #[test]
    fn names_from_an_answer_can_not_break_the_field() {
        let hostile = result("api", "a\"\\\r\nset-cookie: x\u{0}é", 3);
        assert_eq!(rate_limit(&[hostile]).as_deref(), Some(r#""a\"\\??set-cookie: x??";r=3;t=1"#));
    }

    #[test]
    fn those_that_denied_are_named_as_in_the_policy_field() {
        assert_eq!(denying(&[denied("a", Some(1)), result("api", "b", 1)]), ["a"]);
        assert_eq!(denying(&[denied("a\r\né", None), result("other", "b", 1)]), ["api.a???"]);
        assert!(denying(&[LimitResult { shadow: true, ..denied("s", None) }]).is_empty());
    }

    #[test]
    fn the_older_headers_say_the_same() {
        let values = |result| x_rate_limit(&[result]).unwrap().map(|(_, value)| value);
        assert_eq!(values(result("api", "a", 17)), [20, 17, 1]);
        let banned = LimitResult { reason: Reason::Banned, remaining: 45, ..denied("day", Some(3_599_000)) };
        assert_eq!(values(banned), [20, 0, 3599]);
        assert_eq!(x_rate_limit(&[]), None);
    }

    #[test]
    fn integers_have_at_most_15_digits() {
        let large = LimitResult { capacity: u64::MAX, window_ms: u64::MAX, ..result("api", "a", u64::MAX) };
        let policy = rate_limit_policy(std::slice::from_ref(&large)).unwrap();
        assert_eq!(policy, r#""a";q=999999999999999;w=999999999999999"#);
        assert_eq!(rate_limit(&[large]).as_deref(), Some(r#""a";r=999999999999999;t=1"#));
    }
}
