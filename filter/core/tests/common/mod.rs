//! A request made of literals, and the configuration that the suites share.
#![allow(dead_code, reason = "each suite uses what it needs")]

use std::{cell::RefCell, collections::BTreeMap};

use sluicegate_filter_core::{
    Answer, Asked, Callout, Config, Decision, Headers, Judgement, Outcome, Request, SharedData, Surroundings, decide,
    read,
    shared::{Cas, SetError, Stored, Unreadable},
};

/// The example of the configuration's documentation, and a rule for each form of `on_failure`.
pub(crate) const CONFIG: &str = r#"{
    "service": { "cluster": "sluicegate", "authority": "limits.example", "timeout": "25ms",
                 "headers": { "Authorization": "Bearer token" } },
    "rules": [
        { "name": "health", "match": { "path": { "exact": "/health" } }, "limits": [] },
        { "name": "login", "match": { "methods": ["POST"], "path": { "exact": "/login" } },
          "limits": [
              { "policy": "login", "key": ["client_ip"] },
              { "policy": "login-account", "key": [{ "header": "x-account" }] }
          ],
          "timeout": "50ms", "on_failure": "closed" },
        { "name": "api", "match": { "path": { "prefix": "/api/" } },
          "limits": [{ "policy": "api", "key": [{ "header": "x-api-key", "secret": true }], "cost": 2 }],
          "on_failure": "open" },
        { "name": "pair", "match": { "path": { "prefix": "/pair" } },
          "limits": [{ "policy": "pair", "key": ["client_ip", { "header": "X-Tenant", "missing": "shared" }] }],
          "on_failure": { "closed": { "status": 503 } } }
    ]
}"#;

/// Rules with every kind of condition, key and choice, all joined.
pub(crate) const EVERYTHING: &str = r#"
    { "name": "sources", "continue": true, "limits": [
        { "policy": "p", "key": ["client_ip", "method", "host", { "header": "authorization", "secret": true }] },
        { "policy": "p", "key": [{ "cookie": "sid" }, { "query": "key", "missing": { "value": "none" } }] },
        { "policy": "p", "key": [{ "path_segment": 1 }, { "client_ip": { "ipv6_prefix": 48 } }, { "constant": "x" }] },
        { "policy": "p", "key": [{ "jwt": { "claim": ["a", "b"] } }, { "mtls": "uri_san" }, { "property": "x.y" }] },
        { "policy": "p", "key": [{ "header": "x-skip", "missing": "skip" }] },
        { "policy": { "from": { "header": "x-plan" }, "map": { "gold": "gold" }, "default": "free" },
          "cost": { "from": { "query": "cost" }, "map": { "export": 50 }, "max": 100 },
          "key": [{ "route_metadata": ["sluicegate", "tenant"] }] } ] },
    { "name": "path", "continue": true, "match": { "path": { "prefix": "/api/", "trailing_slash": "ignore" } },
      "limits": [{ "policy": "p", "key": ["method"] }] },
    { "name": "regex", "continue": true, "match": { "path": { "regex": "/(v[0-9]|.*x.{9}y)/.*" } },
      "limits": [{ "policy": "p", "key": ["method"] }] },
    { "name": "template", "continue": true,
      "match": { "path": { "template": "/users/{id}/**", "ignore_case": true }, "methods": ["GET", "POST"] },
      "limits": [{ "policy": "p", "key": [{ "path_variable": "id" }] }] },
    { "name": "others", "continue": true, "match": {
        "hosts": ["*.example.com", "[::1]"], "client": ["10.0.0.0/8", "::/0"], "route": "r",
        "headers": [{ "name": "x-a", "present": true }, { "name": "x-b", "absent": true },
                    { "name": "x-c", "equals": "1" }, { "name": "x-d", "regex": "(a|b)*c?" }] },
      "limits": [{ "policy": "p", "key": ["method"] }] },
    { "name": "denies", "match": { "path": { "exact": "/deny" } },
      "limits": [{ "policy": "p", "key": [{ "header": "x-key", "missing": "deny" }] }] },
    { "name": "exempts", "match": { "headers": [{ "name": "x-a", "equals": "1" }] }, "limits": [] }"#;

pub(crate) fn config() -> Config {
    Config::parse(CONFIG.as_bytes()).unwrap()
}

#[derive(Clone, Debug)]
pub(crate) struct TestRequest {
    headers: Headers,
    properties: BTreeMap<String, Vec<u8>>,
}

impl TestRequest {
    pub(crate) fn new(method: &str, path: impl AsRef<[u8]>) -> Self {
        let headers = Headers::new(vec![line(":method", method), line(":path", path)]);
        Self { headers, properties: BTreeMap::new() }.source(Some(b"203.0.113.7:40000"))
    }

    pub(crate) fn header(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let sent = self.headers.lines().map(|(name, value)| line(name, value));
        Self { headers: Headers::new(sent.chain([line(name, value)]).collect()), ..self }
    }

    pub(crate) fn source(mut self, address: Option<&[u8]>) -> Self {
        match address {
            Some(address) => self.property("source.address", address),
            None => {
                self.properties.remove("source.address");
                self
            }
        }
    }

    /// A property, by its path with dots.
    pub(crate) fn property(mut self, path: &str, value: impl AsRef<[u8]>) -> Self {
        self.properties.insert(path.to_owned(), value.as_ref().to_vec());
        self
    }
}

fn line(name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> (Vec<u8>, Vec<u8>) {
    (name.as_ref().to_vec(), value.as_ref().to_vec())
}

impl Request for TestRequest {
    fn headers(&self) -> &Headers {
        &self.headers
    }

    fn property(&self, path: &[&str]) -> Option<Vec<u8>> {
        self.properties.get(&path.join(".")).cloned()
    }
}

/// A configuration of these rules.
pub(crate) fn with_rules(rules: &str) -> Config {
    let json = format!(r#"{{"service":{{"cluster":"c"}},"rules":[{rules}]}}"#);
    Config::parse(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}"))
}

/// The question about a request under these rules; none when it passes without one.
pub(crate) fn asked_by(rules: &str, request: &TestRequest) -> Option<Asked> {
    match decide(&with_rules(rules), request) {
        Decision::Pass { .. } => None,
        Decision::Deny { rule, .. } => panic!("denied by {}", rule.name),
        Decision::Ask(asked) => Some(asked),
    }
}

/// The question about a request; none when it passes without one.
pub(crate) fn question(request: &TestRequest) -> Option<Callout> {
    let config = config();
    match decide(&config, request) {
        Decision::Pass { .. } => None,
        Decision::Deny { rule, .. } => panic!("denied by {}", rule.name),
        Decision::Ask(asked) => Some(Callout::build(&config.service, asked, request)),
    }
}

/// What is remembered of a request to this path.
pub(crate) fn asked(method: &str, path: &str) -> Asked {
    question(&TestRequest::new(method, path)).unwrap().asked
}

/// The judgement on a marked answer.
pub(crate) fn answered(asked: &Asked, status: u16, body: impl AsRef<[u8]>) -> Judgement {
    judge(asked, reply(status, body.as_ref()))
}

/// A marked answer.
pub(crate) fn reply(status: u16, body: &[u8]) -> Outcome<'_> {
    Outcome::Answered(Answer { status: Some(status), marked: true, body })
}

/// The judgement on a callout that ended at 0 ms, in a proxy without shared data.
pub(crate) fn judge(asked: &Asked, outcome: Outcome<'_>) -> Judgement {
    let answer = read(outcome);
    let around = Surroundings { now_ms: 0, shared: &Shared::default() };
    sluicegate_filter_core::judge(asked, answer.as_ref().map_err(Clone::clone), around)
}

/// What the workers of one proxy share.
#[derive(Default)]
pub(crate) struct Shared(RefCell<BTreeMap<String, Stored>>);

impl SharedData for Shared {
    fn get(&self, key: &str) -> Result<Option<Stored>, Unreadable> {
        Ok(self.0.borrow().get(key).cloned())
    }

    fn set(&self, key: &str, value: &[u8], seen: Option<Cas>) -> Result<(), SetError> {
        let now = self.0.borrow().get(key).map(|stored| stored.cas);
        if now != seen {
            return Err(SetError::Mismatch);
        }
        let cas = Cas(now.map_or(1, |Cas(number)| number + 1));
        self.0.borrow_mut().insert(key.to_owned(), Stored { value: value.to_vec(), cas });
        Ok(())
    }
}
