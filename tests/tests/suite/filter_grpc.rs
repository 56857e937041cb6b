//! gRPC through the filter: statuses of its own, and trailers that pass.

use axum::{
    Router,
    body::to_bytes,
    extract::Request,
    http::{HeaderMap, Response},
    routing::post,
};
use serde_json::{Value, json};
use sluicegate_tests::{Envoy, GrpcAnswer, Overlay, Redis, Service, Upstream, grpc_call, grpc_ok};
use sluicegate_wire::header;

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  two:
    limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }]
";

/// The request of `grpc.health.v1.Health/Check` for the service `x`, and its answer `SERVING`.
const CHECK: &str = "/grpc.health.v1.Health/Check";
const REQUEST: &[u8] = b"\x0a\x01x";
const SERVING: &[u8] = b"\x08\x01";

async fn health(request: Request) -> Response<axum::body::Body> {
    assert_eq!(request.headers()["te"], "trailers");
    let body = to_bytes(request.into_body(), usize::MAX).await.unwrap();
    assert_eq!(body[5..], *REQUEST);
    grpc_ok(SERVING)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap())
}

/// A call that ended here: one block of headers, which are the trailers.
fn assert_ended(answer: &GrpcAnswer, status: u32, reason: &str) {
    assert_eq!((answer.http_status, answer.status, &answer.message), (200, status, &None), "{answer:?}");
    assert_eq!(text(&answer.headers, "content-type"), Some("application/grpc"), "{answer:?}");
    assert_eq!(text(&answer.headers, header::REASON), Some(reason), "{answer:?}");
}

#[tokio::test]
async fn a_call_passes_with_its_trailers_or_ends_with_a_status_of_grpc() {
    let rule = |name: &str, on_failure: &str, key: Value| {
        json!({
            "name": name,
            "match": { "headers": [{ "name": "x-rule", "equals": name }] },
            "limits": [{ "policy": "two", "key": [key] }],
            "on_failure": on_failure,
        })
    };
    let rules = json!([
        rule("closed", "closed", json!({ "constant": "a" })),
        rule("open", "open", json!({ "constant": "b" })),
        rule("missing", "open", json!({ "header": "x-account", "missing": "deny" })),
    ]);
    let plugin = json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": rules, "headers": ["rate_limit", "x_rate_limit"], "deny_cache": { "max_entries": 0 },
    });
    let redis = Redis::start().await.unwrap();
    let mut service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start_with(Router::new().route(CHECK, post(health))).await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin).http2_to_upstream();
    let envoy = Envoy::start(&overlay).await.unwrap();
    let call = async |rule: &str| grpc_call(envoy.port(), CHECK, &[("x-rule", rule)], REQUEST).await.unwrap();
    let passed = async |rule: &str, reason: Option<&str>| {
        let answer = call(rule).await;
        assert_eq!((answer.http_status, answer.status, answer.message.as_deref()), (200, 0, Some(SERVING)));
        assert_eq!(text(&answer.headers, header::REASON), reason, "{answer:?}");
        answer.headers
    };

    for remaining in ["1", "0"] {
        let headers = passed("closed", None).await;
        assert_eq!(text(&headers, "x-ratelimit-remaining"), Some(remaining));
        assert!(text(&headers, header::RATE_LIMIT).unwrap().starts_with(&format!("\"day\";r={remaining};")));
    }
    let denied = call("closed").await;
    assert_ended(&denied, 8, "over_limit");
    assert_eq!(denied.status_message, "over_limit: day");
    let wait: u64 = text(&denied.headers, header::RETRY_AFTER).unwrap().parse().unwrap();
    assert!((86_340..=86_400).contains(&wait), "{wait} s");
    assert!(text(&denied.headers, header::RATE_LIMIT).unwrap().starts_with("\"day\";r=0;"), "{denied:?}");
    assert_eq!(text(&denied.headers, header::RATE_LIMIT_POLICY), Some("\"day\";q=2;w=86400"));
    assert_eq!(text(&denied.headers, "x-ratelimit-limit"), Some("2"));

    let missing = call("missing").await;
    assert_ended(&missing, 8, "missing_key");
    assert_eq!(text(&missing.headers, header::RETRY_AFTER), None);

    service.kill();
    let failed = call("closed").await;
    assert_ended(&failed, 14, "failure_closed");
    assert_eq!(text(&failed.headers, header::RETRY_AFTER), Some("1"));
    assert_eq!(text(&failed.headers, header::RATE_LIMIT), None);
    passed("open", Some("failure_open")).await;
}
