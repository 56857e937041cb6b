//! The description of the interface against what really comes back.

use std::{collections::BTreeSet, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Redis, Service, exchange, until};

const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  api:
    limits: [{ name: day, capacity: 3, refill: 3, per: 1d, interval: true }, { name: month, quota: 5, every: month }]
    overrides: true
  login:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }]
    ban: { after: 1, within: 1h, for: 2h }
  plain:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d }]
";

/// What this suite can't provoke here: a wrong token, a slow body, a fault, a listener that is open to others, a page of
/// another site; nor a stream.
const ELSEWHERE: [&str; 4] = ["401", "403", "408", "500"];

/// A stream that doesn't end, which has a suite of its own.
const STREAM: &str = "/v1/events";

/// A listener whose answers are held against its description.
struct Described {
    port: u16,
    client: Client,
    document: Value,
    /// Method, path and status of each answer that was as described.
    seen: BTreeSet<(String, String, String)>,
}

impl Described {
    async fn of(port: u16) -> Self {
        let client = Client::new(port).unwrap();
        let answer = client.get("/openapi.json").await.unwrap();
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        let document = answer.json();
        assert_eq!(document["openapi"], "3.1.0");
        Self { port, client, document, seen: BTreeSet::new() }
    }

    async fn get(&mut self, path: &str) {
        let answer = self.client.get(path).await.unwrap();
        self.check("get", path, &answer);
    }

    async fn delete(&mut self, path: &str) {
        let answer = self.client.send(Method::DELETE, path, &[]).await.unwrap();
        self.check("delete", path, &answer);
    }

    async fn put(&mut self, path: &str, body: &Value) {
        let answer = self.client.put(path, body).await.unwrap();
        self.check("put", path, &answer);
    }

    async fn post(&mut self, path: &str, body: Value) {
        let answer = self.client.post(path, &body).await.unwrap();
        self.check("post", path, &answer);
    }

    /// Bodies that no endpoint takes.
    async fn bad_bodies(&mut self, paths: &[&str]) {
        for path in paths {
            let answer = self.client.send(Method::POST, path, &[]).await.unwrap();
            self.check("post", path, &answer);
            self.post(path, json!({ "policy": 1, "checks": 1 })).await;
            self.large_body("post", path).await;
        }
    }

    /// A body that is refused by its length, before it is there: only the head of the answer is looked at.
    async fn large_body(&mut self, method: &str, path: &str) {
        let request = format!(
            "{} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-length: 300000\r\n\r\n",
            method.to_uppercase(),
            self.port
        );
        let head = exchange(self.port, request.as_bytes()).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 413 ") && head.contains("content-type: application/problem+json"), "{head}");
        let described = &self.document["paths"][path][method]["responses"]["413"]["content"];
        assert!(described["application/problem+json"].is_object(), "{method} {path}: 413 is not described");
        self.seen.insert((method.to_owned(), path.to_owned(), "413".to_owned()));
    }

    fn check(&mut self, method: &str, path: &str, answer: &Answer) {
        let path = path.split('?').next().unwrap();
        let status = answer.status.to_string();
        let described = &self.document["paths"][path][method]["responses"][&status];
        assert!(described.is_object(), "{method} {path}: {status} is not described: {answer:?}");
        let content_type = answer.header("content-type").unwrap().split(';').next().unwrap();
        let content = &described["content"][content_type];
        assert!(content.is_object(), "{method} {path} {status}: {content_type} is not described");
        if content_type.ends_with("json") {
            let mut schema = content["schema"].clone();
            schema["components"] = self.document["components"].clone();
            let validator = jsonschema::validator_for(&schema).unwrap();
            let body = answer.json();
            let faults: Vec<_> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
            assert!(faults.is_empty(), "{method} {path} {status}: {faults:?}: {body}");
        }
        self.seen.insert((method.to_owned(), path.to_owned(), status));
    }

    /// Everything that is described was seen, or is none of this suite's.
    fn assert_all_seen(&self, unseen: &[(&str, &str)]) {
        let paths = self.document["paths"].as_object().unwrap().iter();
        for (path, methods) in paths.filter(|(path, _)| *path != STREAM) {
            for (method, operation) in methods.as_object().unwrap() {
                for status in operation["responses"].as_object().unwrap().keys() {
                    let seen = self.seen.contains(&(method.clone(), path.clone(), status.clone()));
                    let known = ELSEWHERE.contains(&status.as_str()) || unseen.contains(&(path, status));
                    assert!(seen || known, "{method} {path} {status} is described, but was not seen");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_data_listener_answers_as_described() {
    let mut redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let mut data = Described::of(service.port()).await;
    for path in ["/healthz", "/readyz"] {
        data.get(path).await;
    }
    let checks = |policy: &str| json!({ "checks": [{ "policy": policy, "key": "k", "cost": 2 }] });
    let lease = |policy: &str| json!({ "policy": policy, "key": "k", "max": 2, "for_ms": 1000 });
    for _ in 0..2 {
        data.post("/v1/lease", lease("plain")).await;
    }
    let shadow =
        json!({ "checks": [{ "policy": "api", "key": "s" }, { "policy": "api", "key": "s", "shadow": true }] });
    data.post("/v1/check", shadow).await;
    for policy in ["login", "login", "login", "nobody"] {
        data.post("/v1/check", checks(policy)).await;
        data.post("/v1/refund", checks(policy)).await;
        data.post("/v1/lease", lease(policy)).await;
    }
    data.post("/v1/check", json!({ "checks": [{ "policy": "login", "key": "k", "cost": 99 }] })).await;
    data.post("/v1/refund", json!({ "checks": [{ "policy": "api", "key": "k" }], "charge": "x" })).await;
    data.bad_bodies(&["/v1/check", "/v1/refund", "/v1/lease"]).await;
    redis.kill();
    for path in ["/v1/check", "/v1/refund"] {
        data.post(path, checks("login")).await;
    }
    data.post("/v1/lease", lease("plain")).await;
    let unready = async || (data.client.get("/readyz").await.unwrap().status == 503).then_some(());
    until("the service is unready", Duration::from_secs(20), unready).await.unwrap();
    data.get("/readyz").await;
    data.assert_all_seen(&[("/healthz", "503")]);
}

#[tokio::test]
async fn the_admin_listener_answers_as_described() {
    let mut redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let mut admin = Described::of(service.admin_port()).await;
    let data = Client::new(service.port()).unwrap();
    for _ in 0..3 {
        data.take("login", "k", 1).await.unwrap();
    }
    const POSTS: [&str; 5] = ["/v1/peek", "/v1/reset", "/v1/grant", "/v1/ban", "/v1/unban"];
    let body = |path: &str, policy: &str| {
        let mut body = json!({ "policy": policy, "key": "k" });
        if path == "/v1/grant" {
            body["tokens"] = json!(1);
        }
        body
    };
    let own = |policy: &str, key: &str| json!({ "policy": policy, "key": key, "end": "keep", "limits": { "day": { "capacity": 9 }, "month": { "quota": 9 } } });
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/v1/overview",
        "/v1/policies",
        "/v1/top",
        "/v1/top?policy=nobody",
        "/v1/top?n=x",
        "/v1/top?n=0",
    ] {
        admin.get(path).await;
    }
    for path in POSTS {
        for policy in ["login", "api", "nobody"] {
            admin.post(path, body(path, policy)).await;
        }
    }
    for policy in ["api", "login", "nobody"] {
        admin.put("/v1/override", &own(policy, "k")).await;
    }
    admin.large_body("put", "/v1/override").await;
    admin.put("/v1/override", &json!({})).await;
    let empty = admin.client.send(Method::PUT, "/v1/override", &[]).await.unwrap();
    admin.check("put", "/v1/override", &empty);
    admin.post("/v1/peek", json!({ "policy": "api", "key": "k" })).await;
    let mut connection = redis.connection().await.unwrap();
    let foreign = "sg:{api:foreign}!override";
    redis::cmd("SET").arg(foreign).arg("x").arg("PX").arg(60_000).exec_async(&mut connection).await.unwrap();
    admin.post("/v1/peek", json!({ "policy": "api", "key": "foreign" })).await;
    for query in [
        "policy=api&subject=k",
        "policy=api&subject=foreign",
        "policy=login&subject=k",
        "policy=nobody&subject=k",
        "policy=api&subject=%7B",
        "policy=api",
    ] {
        admin.get(&format!("/v1/override?{query}")).await;
    }
    for query in [
        "policy=api&subject=k",
        "policy=api&subject=k",
        "policy=nobody&subject=k",
        "policy=api&subject=%7B",
        "policy=api",
    ] {
        admin.delete(&format!("/v1/override?{query}")).await;
    }
    admin.bad_bodies(&POSTS).await;
    redis.kill();
    for path in POSTS {
        admin.post(path, body(path, "login")).await;
    }
    admin.put("/v1/override", &own("api", "k")).await;
    admin.get("/v1/override?policy=api&subject=k").await;
    admin.delete("/v1/override?policy=api&subject=k").await;
    let unready = async || (admin.client.get("/readyz").await.unwrap().status == 503).then_some(());
    until("the service is unready", Duration::from_secs(20), unready).await.unwrap();
    admin.get("/readyz").await;
    // These need no store; and only what a policy may lack is a conflict.
    let no_store = ["/healthz", "/metrics", "/v1/policies", "/v1/overview", "/v1/top"].map(|path| (path, "503"));
    let no_conflict = ["/v1/reset", "/v1/grant", "/v1/unban", "/v1/peek", "/v1/top"].map(|path| (path, "409"));
    admin.assert_all_seen(&[&no_store[..], &no_conflict, &[("/v1/override", "409")]].concat());
}
