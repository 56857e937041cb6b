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
//! `envoy/filter-config.schema.json` is the same as a JSON Schema, for editors.
//! A field that is in neither is an error that names it; so is a name that stands twice in one object.
//!
//! | field | when left out |
//! |---|---|
//! | `service.cluster` | required: the proxy's name for the service's cluster |
//! | `service.authority` | `sluicegate`: the callout's `:authority` |
//! | `service.timeout` | `25ms`: how long a request waits for the service, `1ms` to `60s` |
//! | `service.headers` | none: headers to add to each callout, such as a token |
//! | `key_pepper` | none: digests of secrets are plain SHA-256; the service needs the same pepper |
//! | `rules` | required: the first that matches a request decides; a request that none matches passes without a callout |
//! | `rules[].name` | required, unique |
//! | `rules[].match` | every request; see [below](#which-requests-match) |
//! | `rules[].limits` | required, up to 16; `[]` exempts the request from the rules below |
//! | `rules[].continue` | `false`; `true` goes on matching, and the limits of later rules come in addition; see [below](#joined-rules-continue) |
//! | `rules[].limits[].policy` | required: a policy of the service, or `{from, map, default}`; see [below](#policies-and-costs-from-the-request) |
//! | `rules[].limits[].key` | required: 1 to 8 parts; see [below](#who-is-counted-key) |
//! | `rules[].limits[].cost` | `1` token; a number, or `{from, map, min, max, default}` |
//! | `rules[].limits[].lease` | none; `{tokens: 50, for: 2s}` takes up to 50 tokens of a hot subject in advance and serves it from them; see [below](#leases) |
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
//! # Which requests: `match`
//!
//! Every field that is there must hold. `methods`, `hosts`, `client` and `route` are one value or a list, of which one
//! must hold.
//!
//! | field | holds for |
//! |---|---|
//! | `methods` | these methods, in capitals; `HEAD` is another than `GET`, though most servers run the same for it |
//! | `path.exact` | this path alone |
//! | `path.prefix` | every path that begins with these characters: `/api` also takes `/apiary`, `/api/` doesn't |
//! | `path.regex` | paths that the [regular expression](crate::Pattern) matches as a whole |
//! | `path.template` | `/users/{id}/orders`: `{id}` and `*` are any one segment, `**` at the end is any rest |
//! | `path.ignore_case` | with `true` also `/LOGIN` (ASCII letters); parts of keys from the path are in lower case then |
//! | `path.trailing_slash` | with `ignore` also `/login/`; `strict` is the default |
//! | `hosts` | these hosts, whatever their port and case; `*.example.com` is every host below `example.com` |
//! | `headers[]` | `{name, present: true}`, `{name, absent: true}`, `{name, equals}` or `{name, regex}` (the whole value), all of the list |
//! | `client` | clients in these ranges of addresses: `10.0.0.0/8`, `2001:db8::/32`; IPv4 inside IPv6 is IPv4 |
//! | `route` | these routes of the proxy, by name |
//!
//! Paths are compared in their [normal form](crate::NormalPath), without query: `//login`, `/./login`, `/a/../login`,
//! `/a/..\login` and `/%6cogin` are `/login`. `/login/`, `/LOGIN`, `/login;x` and `/login%2F` are not, as to HTTP they
//! are other paths. For a server that serves them alike (Express does the first two by default) say `trailing_slash`
//! and `ignore_case`, or `regex: /login(;.*)?`; for `%2F` there is the proxy's own `path_with_escaped_slashes_action`.
//! A servlet container takes `;x` off every segment, also of `/a/..;x/login`: have the proxy refuse `;` where no path
//! needs it. With the proxy's `normalize_path` and `merge_slashes` the server sees what rules see.
//!
//! Of a header that was sent several times a rule with limits wants one line to be as `equals` or `regex` says, an
//! exempting rule all of them: so a second line is neither a way out of limits nor into an exemption. For the same
//! reason a path or header of over 8192 bytes, which is too long to hold a regular expression against, is taken for a
//! match by a rule with limits, and the rules below have their say as well; a rule that exempts takes it for none.
//!
//! # Joined rules: `continue`
//!
//! The checks of all rules that matched travel in one callout and are taken together or not at all, at most 64 of them
//! and 128 parts of keys, rules with a regular expression counted as if they said `continue`. The shortest timeout
//! holds. Without an answer the strictest `on_failure` holds: `closed`, then `local`, then `open`; of two alike the
//! first, but every `local` rule counts its own checks, and when one denies, those before it get back what was taken. A
//! denial looks as the rule of the denying limit says. A rule that asks nothing about a request, because its limits are
//! skipped, has no say; one in shadow has none beside an enforced one. `charge` is each rule's own.
//!
//! # Who is counted: `key`
//!
//! | part | is |
//! |---|---|
//! | `client_ip`, `{client_ip: {ipv6_prefix: 56}}` | the client's address without port; of IPv6 the network, /64 by default |
//! | `method`, `host` | the method; the host without port, in lower case |
//! | `{header: NAME}` | a header's value; of `authorization` the scheme in lower case |
//! | `{cookie: NAME}` | a cookie's value, without quotes, percent-decoded |
//! | `{query: NAME}` | a parameter of the query, decoded as forms are: `+` is a blank |
//! | `{path_segment: 1}` | a segment of the path, counted from 0, percent-decoded |
//! | `{path_variable: id}` | what stands for `{id}` in the template of the rule's path |
//! | `{jwt: {claim: sub, provider: NAME}}` | a claim of the token that `jwt_authn` verified; a list leads to a claim within claims. `provider` is its `payload_in_metadata`, `payload` by default |
//! | `{mtls: uri_san}` | of the client's certificate the first `uri_san` or `dns_san`, the `subject`, or its `sha256` |
//! | `{route_metadata: [NAMESPACE, NAME]}` | metadata of the proxy's route |
//! | `{property: connection.requested_server_name}` | any property of the proxy; a list where names have dots |
//! | `{constant: TEXT}` | always this |
//!
//! | beside a part | when left out |
//! |---|---|
//! | `secret` | `false`; `true` sends a digest instead of the value: SHA-256, with a pepper HMAC-SHA-256 |
//! | `missing` | `shared`: all requests without the value share one bucket. `skip`: the limit is not for them. `deny`: they are rejected, with reason `missing_key` (in shadow only counted). `{value: TEXT}`: as if this had been sent |
//!
//! A value that was sent twice is missing, and under `skip` as under `shared`: doubling it is no way around a limit. An
//! empty value is a value. To servers behind CGI or WSGI a header `x_account` is `x-account`: there have the proxy
//! refuse names with underscores (`headers_with_underscores_action`).
//!
//! # Policies and costs from the request
//!
//! ```json
//! { "policy": { "from": { "jwt": { "claim": "plan" } }, "map": { "gold": "api-gold" }, "default": "api" },
//!   "cost": { "from": { "route_metadata": ["sluicegate", "cost"] }, "max": 100 },
//!   "key": [{ "jwt": { "claim": "sub" } }] }
//! ```
//!
//! `from` is any part of a key. `map` gives a policy or a cost for each value, `default` (a cost's is 1) for every
//! other and for none. With `max` a value of digits is itself a cost, brought within `min` (1) and `max`. A value that
//! could not be taken is counted in `sluicegate_fallbacks_total`. What a client can set, it chooses by: take `from`
//! what the proxy sets or verifies.
//!
//! # Leases
//!
//! A proxy takes tokens for a subject that is asked about often (8 tokens in `for`, or more) in one callout, and serves its
//! next requests without any. `tokens` (1 to 100000) are the most that it holds for one subject, for the time `for`
//! (`500ms` to `60s`) from the moment before it asked for them. What is left 0.1 s before that is over, or is not used for
//! half of it, is given back. So in any time `t` at most `capacity + rate · (t + for)` is admitted. A request never waits for a lease.
//! The policy has one bucket and no ban, and the service must allow refunds. A limit with a lease has no `charge`; in shadow
//! it is asked about each time, as is a subject whose policy and key are over 512 bytes.

mod check;
mod check_choice;
mod check_failure;
mod check_key;
mod check_lease;
mod check_match;
mod check_runtime;
mod error;
mod forms;
mod json;
mod node;
mod place;
mod protobuf;
mod raw;
mod raw_choice;
mod raw_failure;
mod raw_key;
mod raw_lease;
mod raw_match;
mod raw_runtime;
#[cfg(feature = "schema")]
mod schema;

use std::rc::Rc;

use sluicegate_wire::{Name, Pepper};

pub use error::ConfigError;
#[cfg(feature = "schema")]
pub use schema::schema;

use self::{
    node::{Node, Read as _},
    place::Place,
    raw::RawConfig,
};
use crate::{
    BreakerConfig, CostChoice, DenyCacheConfig, HeaderName, HeaderValue, Key, LabelForm, Lease, Matcher, OnFailure,
    OnlyStatus, PolicyChoice, Style, Timeout,
};

/// A configuration in which every rule can be applied.
#[derive(Debug)]
pub struct Config {
    /// The service to ask.
    pub service: Service,
    /// What goes into the digests of secrets.
    pub key_pepper: Option<Pepper>,
    /// The rules, first match first. Their names differ.
    pub rules: Vec<Rc<Rule>>,
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
    /// What to ask; nothing exempts the request from the rules below.
    pub limits: Vec<Limit>,
    /// Whether to go on matching, so that the limits of later rules come in addition.
    pub go_on: bool,
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
    /// The policy of the service.
    pub policy: PolicyChoice,
    /// Who is counted.
    pub key: Key,
    /// Tokens that one request takes.
    pub cost: CostChoice,
    /// Judge only: by the limit, its rule or the whole configuration.
    pub shadow: bool,
    /// How tokens are taken in advance.
    pub lease: Option<Lease>,
}

impl Config {
    /// Parses a plugin configuration, whichever of the two forms it has. The error names the field.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        let value = raw::parse(bytes)?;
        check::config(RawConfig::read(Node { value: &value, place: Place::Top })?)
    }

    /// Whether a limit leases.
    #[must_use]
    pub fn leases(&self) -> bool {
        self.rules.iter().any(|rule| rule.limits.iter().any(|limit| limit.lease.is_some()))
    }
}
