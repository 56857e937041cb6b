//! The plugin configuration: an object, as JSON text or as a protobuf `Struct`, parsed and checked once.
//!
//! ```json
//! {
//!   "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "25ms" },
//!   "rules": [
//!     {
//!       "name": "login",
//!       "match": { "methods": ["POST"], "path": { "exact": "/login" } },
//!       "limits": [
//!         { "policy": "login", "key": ["client_ip"] },
//!         { "policy": "login-account", "key": [{ "header": "x-account" }] }
//!       ],
//!       "timeout": "50ms",
//!       "on_failure": "closed"
//!     },
//!     { "name": "api", "limits": [{ "policy": "api", "key": [{ "header": "x-api-key", "secret": true }] }] }
//!   ]
//! }
//! ```
//!
//! | field | when left out |
//! |---|---|
//! | `service.cluster` | required: the proxy's name for the service's cluster |
//! | `service.authority` | `sluicegate`: the callout's `:authority` |
//! | `service.timeout` | `25ms`: how long a request waits for the service, `1ms` to `60s` |
//! | `service.headers` | none: headers to add to each callout, such as a token |
//! | `key_pepper` | none: digests of secrets are plain SHA-256; the service needs the same pepper |
//! | `rules` | required: the first that matches a request decides; a request that none matches passes |
//! | `rules[].name` | required, unique |
//! | `rules[].match` | every request; `methods` and `path` (`exact` or `prefix`, on the [normalised path](crate::NormalPath)) |
//! | `rules[].limits` | required; `[]` exempts the request from the rules below |
//! | `rules[].limits[].policy` | required: a policy of the service |
//! | `rules[].limits[].key` | required: `client_ip` or `{header, secret, missing}` |
//! | `rules[].limits[].cost` | `1` token |
//! | `….key[].secret` | `false`; `true` sends a digest instead of the value: SHA-256, with a pepper HMAC-SHA-256 |
//! | `….key[].missing` | `shared`: all requests without the header, or with it twice, share one bucket |
//! | `rules[].timeout` | `service.timeout` |
//! | `rules[].on_failure` | **`open`**: without an answer of the service the request passes. `closed` rejects it with 429, `{closed: {status: 503}}` with another status, `{local: {…}}` counts in this proxy |
//! | `….local.capacity`, `refill`, `per` | required: a token bucket (`refill` tokens in `per`, such as `1m`) for each [subject](crate::local) of the rule, which all workers of the proxy share; a request takes its cost, what is over is rejected with 429 |
//! | `….local.slots` | `4096`: the most buckets of the rule, 32 to 65536 |
//! | `rules[].shadow`, `limits[].shadow`, `shadow` | `false`; `true` judges and charges the limit, the rule's limits or all limits, and marks the response with `x-sluicegate-shadow`, but rejects nothing |
//! | `rules[].charge.only_status` | every request stays charged. With `[401, 403]` what a request took is given back when its response has another status. The service must allow refunds |
//! | `rules[].reject` | the one of the top level |
//! | `reject.status` | `429`: the status of a denial, 400 to 599 |
//! | `reject.body` | problem details; a text of your own is `text/plain` unless `reject.headers` has a `content-type` |
//! | `reject.headers` | none: headers to add to a denial |
//! | `headers` | `[rate_limit]`: which headers show the state of the limits, on passed and denied requests; `x_rate_limit` are the `x-ratelimit-*` |
//! | `breaker.failures` | `5` failures in a row of a worker's callouts open its breaker: failure verdicts come without a callout. `0` never does |
//! | `breaker.open_for` | `1s`: then one request at a time asks, until an answer closes the breaker |
//! | `deny_cache.max_entries` | `1000` denied questions that a worker answers from memory; `0` asks each time |
//! | `deny_cache.max_life` | `1s`, or as long as the service allows if that is shorter |
//! | `metrics.labels` | `envoy`: how labels stand in the names of [metrics](crate::Metric); or `istio` |
//!
//! A field that is not in this list is an error that names it.

mod check;
mod check_failure;
mod check_runtime;
mod error;
mod protobuf;
mod raw;
mod raw_failure;
mod raw_runtime;

use std::rc::Rc;

use sluicegate_wire::{Cost, Name, Pepper};

pub use error::ConfigError;

use crate::{
    BreakerConfig, DenyCacheConfig, HeaderName, HeaderValue, Key, LabelForm, Matcher, OnFailure, OnlyStatus, Style,
    Timeout,
};

/// A configuration in which every rule can be applied.
#[derive(Debug)]
pub struct Config {
    /// The service to ask.
    pub service: Service,
    /// What goes into the digests of secrets.
    pub key_pepper: Option<Pepper>,
    /// The rules, first match first. Their names differ.
    pub rules: Vec<Rule>,
    /// When callouts pause.
    pub breaker: BreakerConfig,
    /// Which denials are kept.
    pub deny_cache: DenyCacheConfig,
    /// How labels stand in the names of metrics.
    pub labels: LabelForm,
}

/// How to reach the service.
#[derive(Debug)]
pub struct Service {
    /// The proxy's name for the service's cluster.
    pub cluster: String,
    /// The `:authority` of callouts.
    pub authority: String,
    /// Headers to add to each callout.
    pub headers: Vec<(HeaderName, HeaderValue)>,
}

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub name: Name,
    /// The requests it is for.
    pub matcher: Matcher,
    /// What to ask; nothing exempts the request.
    pub limits: Vec<Limit>,
    /// How long to wait for the answer.
    pub timeout: Timeout,
    /// What to do without one.
    pub on_failure: OnFailure,
    /// How its answers look.
    pub style: Rc<Style>,
    /// Where only responses of some statuses stay charged.
    pub only_status: Option<OnlyStatus>,
}

/// One question of a rule: a policy about a key.
#[derive(Debug)]
pub struct Limit {
    /// The policy's name in the service.
    pub policy: Name,
    /// Who is counted.
    pub key: Key,
    /// Tokens that one request takes.
    pub cost: Cost,
    /// Judge only: by the limit, its rule or the whole configuration.
    pub shadow: bool,
}

impl Config {
    /// Parses a plugin configuration, whichever of the two forms it has. The error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        check::config(raw::read(bytes)?)
    }
}
