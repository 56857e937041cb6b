//! From the configuration as written to one that can be applied.

use sluicegate_wire::Pepper;

use super::{
    Config, ConfigError, Limit, Rule, Service,
    check_failure::on_failure,
    check_runtime::{self, Defaults},
    raw::{Object, RawConfig, RawKeyPart, RawLimit, RawMatch, RawPath, RawRule, RawService},
};
use crate::{
    HeaderName, HeaderValue, Key, KeyPart, Matcher, NormalPath, PathMatch, Timeout,
    header::{HeaderNameError, is_own},
};

/// The most limits of one rule; bounds the size of a question.
const MAX_LIMITS: usize = 16;

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

pub(super) fn config(raw: RawConfig) -> Result<Config, ConfigError> {
    // Empty is left out: an environment that templates the configuration can't always leave a field out.
    let key_pepper = Pepper::new(raw.key_pepper.0.as_bytes()).ok();
    let Object(raw_service) = raw.service;
    let default_timeout = raw_service.timeout;
    let service = service(raw_service)?;
    let defaults = Defaults::new(raw.shadow, raw.reject.0, raw.headers)?;
    let mut rules: Vec<Rule> = Vec::with_capacity(raw.rules.len());
    for (index, Object(raw)) in raw.rules.into_iter().enumerate() {
        let path = format!("rules[{index}]");
        if let Some(earlier) = rules.iter().position(|rule| rule.name == raw.name) {
            let problem = format!("{:?} is the name of rules[{earlier}] too: names are unique", raw.name.as_str());
            return Err(ConfigError::field(format!("{path}.name"), problem));
        }
        rules.push(rule(&path, raw, default_timeout, &defaults)?);
    }
    Ok(Config {
        service,
        key_pepper,
        rules,
        breaker: check_runtime::breaker(&raw.breaker.0)?,
        deny_cache: check_runtime::deny_cache(&raw.deny_cache.0)?,
        labels: check_runtime::labels(&raw.metrics.0)?,
    })
}

fn service(raw: RawService) -> Result<Service, ConfigError> {
    for (field, text) in [("cluster", &raw.cluster), ("authority", &raw.authority)] {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ConfigError::field(format!("service.{field}"), "use printable characters without blanks"));
        }
    }
    let headers = raw.headers.iter().map(|(name, value)| service_header(name, &value.0)).collect::<Result<_, _>>()?;
    Ok(Service { cluster: raw.cluster, authority: raw.authority, headers })
}

fn service_header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ConfigError> {
    let path = || format!("service.headers.{name}");
    let checked: HeaderName =
        name.parse().map_err(|error: HeaderNameError| ConfigError::field(path(), error.to_string()))?;
    let set_by_filter = RESERVED.contains(&checked.as_str())
        || is_own(checked.as_str().as_bytes())
        || checked.as_str().starts_with("x-envoy-");
    if set_by_filter {
        return Err(ConfigError::field(path(), "the filter or the proxy sets this header itself"));
    }
    // Refused rather than mended: a token with a `?` in it would only fail later.
    if value.chars().any(char::is_control) {
        return Err(ConfigError::field(path(), "a header value has no control characters, such as a line's end"));
    }
    Ok((checked, HeaderValue::new(value)))
}

fn rule(path: &str, raw: RawRule, default_timeout: Timeout, defaults: &Defaults) -> Result<Rule, ConfigError> {
    if raw.limits.len() > MAX_LIMITS {
        return Err(ConfigError::field(format!("{path}.limits"), format!("a rule has at most {MAX_LIMITS} limits")));
    }
    let shadow = defaults.shadow || raw.shadow;
    let limit = |(index, Object(raw))| limit(&format!("{path}.limits[{index}]"), raw, shadow);
    let limits: Vec<Limit> = raw.limits.into_iter().enumerate().map(limit).collect::<Result<_, _>>()?;
    Ok(Rule {
        matcher: matcher(&format!("{path}.match"), raw.matcher.0)?,
        timeout: raw.timeout.unwrap_or(default_timeout),
        on_failure: on_failure(&format!("{path}.on_failure"), &raw.on_failure, &limits)?,
        style: defaults.style(path, raw.reject)?,
        only_status: check_runtime::only_status(path, raw.charge)?,
        limits,
        name: raw.name,
    })
}

fn matcher(path: &str, raw: RawMatch) -> Result<Matcher, ConfigError> {
    if let Some(methods) = &raw.methods {
        let method = |method: &String| method.parse::<HeaderName>().is_ok() && *method == method.to_ascii_uppercase();
        if methods.is_empty() || !methods.iter().all(method) {
            let problem = "list methods in capitals, such as [GET, POST]; leave the field out for all";
            return Err(ConfigError::field(format!("{path}.methods"), problem));
        }
    }
    let path_match = raw.path.map(|Object(raw)| path_match(&format!("{path}.path"), raw)).transpose()?;
    Ok(Matcher { methods: raw.methods, path: path_match })
}

fn path_match(path: &str, raw: RawPath) -> Result<PathMatch, ConfigError> {
    match raw {
        RawPath { exact: Some(exact), prefix: None } => {
            normal(&exact).map(PathMatch::Exact).map_err(|problem| ConfigError::field(format!("{path}.exact"), problem))
        }
        RawPath { exact: None, prefix: Some(prefix) } => normal(&prefix)
            .map(PathMatch::Prefix)
            .map_err(|problem| ConfigError::field(format!("{path}.prefix"), problem)),
        RawPath { .. } => Err(ConfigError::field(path, "give one of exact and prefix")),
    }
}

/// A path that requests can have after normalisation. Another could never match, or match more than it seems to.
fn normal(text: &str) -> Result<NormalPath, String> {
    let normal = NormalPath::of(text.as_bytes());
    if normal.as_str() == text {
        return Ok(normal);
    }
    Err(format!("requests are compared in their normal form, without a query: write it as {:?}", normal.as_str()))
}

fn limit(path: &str, raw: RawLimit, shadow: bool) -> Result<Limit, ConfigError> {
    let part = |(index, raw)| key_part(&format!("{path}.key[{index}]"), raw);
    let parts = raw.key.into_iter().enumerate().map(part).collect::<Result<_, _>>()?;
    let key = Key::new(parts).map_err(|error| ConfigError::field(format!("{path}.key"), error.to_string()))?;
    Ok(Limit { policy: raw.policy, key, cost: raw.cost, shadow: shadow || raw.shadow })
}

fn key_part(path: &str, raw: RawKeyPart) -> Result<KeyPart, ConfigError> {
    let RawKeyPart::Header(raw) = raw else {
        return Ok(KeyPart::ClientIp);
    };
    let field = |problem: &str| ConfigError::field(format!("{path}.header"), problem);
    let name: HeaderName = raw.header.parse().map_err(|error: HeaderNameError| field(&error.to_string()))?;
    if name.as_str() == "host" {
        return Err(field("the proxy hands the host over as a pseudo-header, so no request has this one"));
    }
    if is_own(name.as_str().as_bytes()) {
        return Err(field("this header is Sluicegate's own and never comes from a client"));
    }
    Ok(KeyPart::Header { name, secret: raw.secret })
}
