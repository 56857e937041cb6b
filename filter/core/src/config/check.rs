//! From the configuration as written to one that can be applied.

use std::rc::Rc;

use sluicegate_wire::Pepper;

use super::{
    Config, ConfigError, Limit, Rule, Service, check_choice,
    check_failure::on_failure,
    check_key,
    check_lease::lease,
    check_match::matcher,
    check_runtime::{self, Defaults},
    place::Place,
    raw::{RawConfig, RawLimit, RawRule, RawService},
};
use crate::{
    HeaderName, HeaderValue, Matcher, Timeout,
    header::{HeaderNameError, is_own},
};

/// The most limits of one rule.
pub(super) const MAX_LIMITS: usize = 16;
/// The most checks that the service takes in one question.
const MAX_CHECKS: usize = 64;
/// The most parts of all keys of one question. A part is at most 256 bytes, 1.5 kB as JSON, and the service takes 256 kB.
const MAX_PARTS: usize = 128;

/// Callout headers that the filter sets, or that describe the body and connection it makes.
const RESERVED: [&str; 8] = [
    "content-type",
    "content-length",
    "transfer-encoding",
    "connection",
    "host",
    "upgrade",
    "traceparent",
    "x-request-id",
];

pub(super) fn config(raw: RawConfig<'_>) -> Result<Config, ConfigError> {
    // Empty is left out: an environment that templates the configuration can't always leave a field out.
    let key_pepper = raw.key_pepper.as_ref().and_then(|pepper| Pepper::new(pepper.0.as_bytes()).ok());
    let defaults = Defaults::new(&raw)?;
    let default_timeout = raw.service.timeout.unwrap_or_default();
    let service = service(raw.service)?;
    let all = Place::Top.field("rules");
    let mut rules: Vec<Rc<Rule>> = Vec::with_capacity(raw.rules.len());
    for (index, raw) in raw.rules.into_iter().enumerate() {
        let place = all.item(index);
        if let Some(earlier) = rules.iter().position(|rule| rule.name == raw.name) {
            let problem = format!("{:?} is the name of rules[{earlier}] too: names are unique", raw.name.as_str());
            return Err(place.field("name").wrong(problem));
        }
        rules.push(Rc::new(rule(&place, raw, default_timeout, &defaults)?));
    }
    bounded(&rules)?;
    Ok(Config {
        service,
        key_pepper,
        rules,
        breaker: check_runtime::breaker(&raw.breaker.unwrap_or_default()),
        deny_cache: check_runtime::deny_cache(&raw.deny_cache.unwrap_or_default()),
        labels: check_runtime::labels(&raw.metrics.unwrap_or_default()),
    })
}

/// No request makes a question that the service would refuse for its size: not even one that all rules match.
fn bounded(rules: &[Rc<Rule>]) -> Result<(), ConfigError> {
    let (mut checks, mut parts) = (0_usize, 0_usize);
    for (index, rule) in rules.iter().enumerate() {
        let own_parts = rule.limits.iter().map(|limit| limit.key.parts().len()).fold(0, usize::saturating_add);
        let all_checks = checks.saturating_add(rule.limits.len());
        let all_parts = parts.saturating_add(own_parts);
        for (all, what, most) in [(all_checks, "limits", MAX_CHECKS), (all_parts, "parts of keys", MAX_PARTS)] {
            if all > most {
                let problem = format!(
                    "with the rules before it that say continue or have a regex, a request can have {all} {what}: at most {most}"
                );
                return Err(Place::Top.field("rules").item(index).field("limits").wrong(problem));
            }
        }
        if rule.go_on || rule.matcher.has_pattern() {
            (checks, parts) = (all_checks, all_parts);
        }
    }
    Ok(())
}

fn service(raw: RawService<'_>) -> Result<Service, ConfigError> {
    let authority = raw.authority.unwrap_or("sluicegate");
    let place = Place::Top.field("service");
    for (field, text) in [("cluster", raw.cluster), ("authority", authority)] {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(place.field(field).wrong("use printable characters without blanks"));
        }
    }
    let mut headers = Vec::new();
    for (name, value) in raw.headers.unwrap_or_default().0 {
        headers.push(service_header(&place.field("headers").field(name), name, value.0)?);
    }
    Ok(Service { cluster: raw.cluster.to_owned(), authority: authority.to_owned(), headers })
}

fn service_header(place: &Place<'_>, name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ConfigError> {
    let checked: HeaderName = name.parse().map_err(|error: HeaderNameError| place.wrong(error.to_string()))?;
    let set_by_filter = RESERVED.contains(&checked.as_str())
        || is_own(checked.as_str().as_bytes())
        || checked.as_str().starts_with("x-envoy-");
    if set_by_filter {
        return Err(place.wrong("the filter or the proxy sets this header itself"));
    }
    // Refused rather than mended: a token with a `?` in it would only fail later.
    if value.chars().any(char::is_control) {
        return Err(place.wrong("a header value has no control characters, such as a line's end"));
    }
    Ok((checked, HeaderValue::new(value)))
}

fn rule(
    place: &Place<'_>,
    raw: RawRule<'_>,
    default_timeout: Timeout,
    defaults: &Defaults,
) -> Result<Rule, ConfigError> {
    let go_on = raw.go_on.unwrap_or(false);
    let all = place.field("limits");
    if raw.limits.len() > MAX_LIMITS {
        return Err(all.wrong(format!("a rule has at most {MAX_LIMITS} limits")));
    }
    if raw.limits.is_empty() && go_on {
        let problem = "a rule without limits exempts from the rules below: it can't go on to them";
        return Err(place.field("continue").wrong(problem));
    }
    let matcher = matcher(&place.field("match"), raw.matcher.unwrap_or_default())?;
    let shadow = defaults.shadow || raw.shadow.unwrap_or(false);
    let raw_charge = raw.charge;
    let mut limits = Vec::new();
    for (index, raw) in raw.limits.into_iter().enumerate() {
        limits.push(limit(&all.item(index), raw, &matcher, shadow, raw_charge.is_some())?);
    }
    Ok(Rule {
        timeout: raw.timeout.unwrap_or(default_timeout),
        on_failure: on_failure(&place.field("on_failure"), &raw.on_failure.unwrap_or_default(), &limits)?,
        style: defaults.style(place, raw.reject.as_ref())?,
        only_status: check_runtime::only_status(place, raw_charge.as_ref())?,
        name: raw.name,
        matcher,
        limits,
        go_on,
    })
}

fn limit(
    place: &Place<'_>,
    raw: RawLimit<'_>,
    matcher: &Matcher,
    shadow: bool,
    charged: bool,
) -> Result<Limit, ConfigError> {
    let cost = check_choice::cost(&place.field("cost"), raw.cost, matcher)?;
    let lease = raw.lease.map(|raw| lease(&place.field("lease"), &raw, &cost, charged)).transpose()?;
    Ok(Limit {
        policy: check_choice::policy(&place.field("policy"), raw.policy, matcher)?,
        key: check_key::key(&place.field("key"), raw.key, matcher)?,
        cost,
        shadow: shadow || raw.shadow.unwrap_or(false),
        lease,
    })
}
