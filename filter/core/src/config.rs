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
//! | `rules[].on_failure` | **`open`**: without an answer of the service the request passes. `closed` rejects it with 429, `{closed: {status: 503}}` with another status |
//!
//! A field that is not in this list is an error that names it.

mod check;
mod error;
mod protobuf;
mod raw;

use sluicegate_wire::{Cost, Name, Pepper};

pub use error::ConfigError;

use crate::{HeaderName, HeaderValue, Key, Matcher, OnFailure, Timeout};

/// A configuration in which every rule can be applied.
#[derive(Debug)]
pub struct Config {
    /// The service to ask.
    pub service: Service,
    /// What goes into the digests of secrets.
    pub key_pepper: Option<Pepper>,
    /// The rules, first match first. Their names differ.
    pub rules: Vec<Rule>,
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
}

impl Config {
    /// Parses a plugin configuration, whichever of the two forms it has. The error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        check::config(raw::read(bytes)?)
    }
}
