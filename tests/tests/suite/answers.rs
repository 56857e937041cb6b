//! What a client is told, by the service and through Envoy.

use std::net::Ipv4Addr;

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Redis, Service, Stack};
use sluicegate_wire::{Problem, header};

/// Refills once a day, so that numbers stay what they are while a test runs.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  two:
    limits:
      - { name: day, capacity: 2, refill: 2, per: 1d, interval: true }
      - { name: wide, capacity: 1000, refill: 1000, per: 1d, interval: true }
";

/// `Retry-After` and `t`: whole seconds, a day less what the test has taken.
fn assert_about_a_day(seconds: &str) {
    let seconds: u64 = seconds.parse().unwrap_or_else(|_| panic!("{seconds:?} is not whole seconds"));
    assert!((86_340..=86_400).contains(&seconds), "{seconds} s");
}

/// The headers of a denial, the same from both programs.
fn assert_denial_headers(answer: &Answer) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_about_a_day(answer.header(header::RETRY_AFTER).expect("Retry-After"));
    let rate_limit = answer.header(header::RATE_LIMIT).expect("RateLimit");
    assert_about_a_day(rate_limit.strip_prefix(r#""day";r=0;t="#).unwrap_or_else(|| panic!("RateLimit: {rate_limit}")));
    assert_eq!(
        answer.header(header::RATE_LIMIT_POLICY),
        Some(r#""day";q=2;w=86400, "wide";q=1000;w=86400"#),
        "{answer:?}"
    );
}

#[tokio::test]
async fn the_service_says_what_it_decided() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();

    let allowed = client.take("two", "u", 2).await.unwrap();
    assert_eq!(allowed.status, 200, "{allowed:?}");
    assert!(allowed.header(header::MARKER).is_some());
    assert_eq!(allowed.header("content-type"), Some("application/json"));
    assert_eq!(allowed.header(header::RETRY_AFTER), None);
    let body = allowed.json();
    assert_eq!(body["allowed"], true);
    let result = &body["results"][0];
    assert_eq!((&result["policy"], &result["limit"]), (&json!("two"), &json!("day")));
    assert_eq!((&result["reason"], &result["remaining"], &result["capacity"]), (&json!("ok"), &json!(0), &json!(2)));
    assert_eq!((&result["window_ms"], &result["retry_after_ms"]), (&json!(86_400_000), &json!(0)));

    let denied = client.take("two", "u", 1).await.unwrap();
    assert_denial_headers(&denied);
    assert!(denied.header(header::MARKER).is_some());
    let body = denied.json();
    assert_eq!(body["allowed"], false);
    let reasons: Vec<_> = body["results"].as_array().unwrap().iter().map(|result| result["reason"].clone()).collect();
    assert_eq!(reasons, ["over_limit", "ok"]);

    let looked = client.take("two", "u", 0).await.unwrap().json();
    assert_eq!(looked["results"][1]["remaining"], 998, "the denied take was charged: {looked}");

    let never = client.take("two", "u", 3).await.unwrap();
    assert_eq!((never.status, never.header(header::RETRY_AFTER)), (429, None), "{never:?}");
    assert_eq!(never.json()["results"][0]["reason"], "never");
    assert_eq!(never.json()["results"][0]["retry_after_ms"], Value::Null);
}

#[tokio::test]
async fn the_service_refuses_what_is_not_a_check() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let check = async |body: Value, status: u16, word: &str| {
        let answer = client.check(&body).await.unwrap();
        assert_eq!(answer.status, status, "{body}: {answer:?}");
        assert!(answer.header(header::MARKER).is_some(), "{body}");
        assert_eq!(answer.header("content-type"), Some(Problem::CONTENT_TYPE), "{body}");
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{body}");
        assert!(problem["detail"].as_str().unwrap_or_default().contains(word), "{body}: {problem}");
    };
    check(json!({ "checks": [{ "policy": "no-such", "key": "u" }] }), 404, "no-such").await;
    check(json!({ "checks": [{ "policy": "two", "key": "u", "cost": -1 }] }), 422, "cost").await;
    check(json!({ "checks": [{ "policy": "two", "key": "u", "cost": 0.5 }] }), 422, "cost").await;
    check(json!({ "checks": [{ "policy": "two", "key": [] }] }), 422, "key").await;
    check(json!({ "checks": [{ "policy": "two", "key": "x".repeat(300_000) }] }), 413, "bytes").await;
}

fn plugin() -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "5s" },
        "rules": [
            {
                "name": "costly",
                "match": { "path": { "prefix": "/costly" } },
                "limits": [{ "policy": "two", "key": [{ "header": "x-api-key", "secret": true }], "cost": 3 }],
                "on_failure": "closed",
            },
            {
                "name": "login",
                "match": { "methods": ["POST"], "path": { "exact": "/login" } },
                "limits": [{ "policy": "two", "key": ["client_ip"] }],
                "on_failure": "closed",
            },
            {
                "name": "api",
                "match": { "path": { "prefix": "/api/" } },
                "limits": [{ "policy": "two", "key": [{ "header": "x-api-key", "secret": true }] }],
                "on_failure": "closed",
            },
        ],
    })
}

#[tokio::test]
async fn envoy_passes_then_answers_429_itself() {
    let stack = Stack::start(SERVICE, &plugin()).await.unwrap();
    let client = stack.client().unwrap();
    let get = async |key: &str| client.send(Method::GET, "/api/x", &[("x-api-key", key)]).await.unwrap();

    for remaining in [1, 0] {
        let passed = get("alice").await;
        assert_eq!((passed.status, passed.reason()), (200, None), "{passed:?}");
        let rate_limit = passed.header(header::RATE_LIMIT).expect("RateLimit");
        assert!(rate_limit.starts_with(&format!(r#""day";r={remaining};t="#)), "{rate_limit}");
        assert!(passed.header(header::RATE_LIMIT_POLICY).is_some());
        assert_eq!(passed.header(header::RETRY_AFTER), None);
        assert_eq!(passed.header(header::MARKER), None, "the service's own header has no business here");
    }
    let denied = get("alice").await;
    assert_denial_headers(&denied);
    assert_eq!(denied.reason(), Some("over_limit"));
    assert_eq!(denied.header("content-type"), Some(Problem::CONTENT_TYPE));
    let problem = denied.json();
    assert_eq!((&problem["type"], &problem["status"]), (&json!(Problem::QUOTA_EXCEEDED), &json!(429)));
    assert_eq!(problem["violated-policies"], json!(["day"]));
    let seen = stack.upstream.take_seen();
    assert_eq!(seen.len(), 2, "a denied request reached the upstream");
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("GET", "/api/x"));
    assert_eq!(seen[0].headers["x-api-key"], "alice");

    // What only the filter may say is taken off a request.
    let forged = [(header::REASON, "failure_open"), (header::TIMEOUT_MS, "1"), (header::MARKER, "1")];
    assert_eq!(client.send(Method::GET, "/", &forged).await.unwrap().status, 200);
    let seen = stack.upstream.take_seen();
    assert!(forged.iter().all(|(name, _)| !seen[0].headers.contains_key(*name)), "{seen:?}");

    // Another key, another bucket; and no key is a bucket of its own.
    assert_eq!(get("bob").await.status, 200);
    assert_eq!(client.get("/api/x").await.unwrap().status, 200);

    let never = client.get("/costly").await.unwrap();
    assert_eq!((never.status, never.reason()), (429, Some("never")), "{never:?}");
    assert_eq!(never.header(header::RETRY_AFTER), None);

    // A secret is nowhere in the store.
    let mut connection = stack.redis.connection().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert!(keys.iter().all(|key| key.starts_with("sg:{two:") && !key.contains("alice")), "{keys:?}");
}

#[tokio::test]
async fn envoy_asks_only_about_what_a_rule_matches() {
    let stack = Stack::start(SERVICE, &plugin()).await.unwrap();
    let client = stack.client().unwrap();
    let other = Client::from_address(stack.envoy.port(), Ipv4Addr::new(127, 0, 0, 2)).unwrap();
    let login = async |client: &Client| client.send(Method::POST, "/login", &[]).await.unwrap().status;

    assert_eq!([login(&client).await, login(&client).await, login(&client).await], [200, 200, 429]);
    assert_eq!(login(&other).await, 200, "another address has a bucket of its own");
    for (method, path) in
        [(Method::GET, "/login"), (Method::POST, "/login/x"), (Method::GET, "/apix"), (Method::GET, "/")]
    {
        let answer = client.send(method, path, &[]).await.unwrap();
        assert_eq!((answer.status, answer.header(header::RATE_LIMIT)), (200, None), "{path}: {answer:?}");
    }
    // Other spellings of a limited path are the same path.
    for path in ["//login", "/./login", "/x/../login", "/login?next=/", "/%6Cogin"] {
        assert_eq!(client.send(Method::POST, path, &[]).await.unwrap().status, 429, "{path}");
    }
    // What the upstream answers is the upstream's.
    stack.upstream.answer_with(503);
    assert_eq!(client.send(Method::GET, "/api/x", &[("x-api-key", "carol")]).await.unwrap().status, 503);
}
