use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{Method, Request, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use hyper::body::Frame;
use serde_json::Value;
use sluicegate_lua::KeyPrefix;
use sluicegate_wire::{CheckAnswer, LimitResult, Problem, Reason, header::MARKER};
use tower::ServiceExt as _;

use super::*;
use crate::{
    config::Config,
    metrics::{Decisions, Metrics},
    policies::Live,
    store::Store,
    top::Top,
};

/// Why there is no decision: the store's socket isn't there.
const NO_STORE: &str = "the store can't be reached: No such file or directory (os error 2)";

/// An app with one policy, `api`, whose store can't be reached: what is answered here needs none.
fn app(phase: Phase) -> Arc<App> {
    const CONFIG: &str = "
store: { url: unix:///nowhere/redis.sock }
refunds: false
policies: { api: { limits: [{ name: burst, capacity: 1, refill: 1, per: 1s }] } }
";
    Arc::new(app_of(CONFIG, phase))
}

/// An app of this configuration, whose pepper is not looked at.
pub(super) fn app_of(text: &str, phase: Phase) -> App {
    let config = Config::parse("app.yaml", text, &|_| None).unwrap();
    let refunds = config.allows_refunds(&config.listen);
    let store = Store::open(&config.store).unwrap();
    let (_, phase) = watch::channel(phase);
    let policies = Live::new(config.policies);
    let (decisions, traces, history) = (Decisions::default(), Traces::default(), History::default());
    let metrics = Metrics::new(&store, &policies, &decisions, traces.counts());
    let top = Top::new(Instant::now());
    let limiter = Limiter { policies, prefix: KeyPrefix::default(), pepper: None, store, decisions, top };
    let rate_limit_stats = RateLimitStats::default();
    let store_timeout = Duration::from_secs(1);
    let (streams, started) = (EventStreams::default(), Instant::now());
    App { limiter, rate_limit_stats, metrics, history, streams, started, traces, store_timeout, refunds, phase }
}

async fn send(router: Router, request: Request<Body>) -> Response {
    let response = router.oneshot(request).await.unwrap();
    assert_eq!(response.headers()[MARKER], env!("CARGO_PKG_VERSION"));
    response
}

/// The status and detail of a problem; everything else about it is asserted.
async fn problem(response: Response) -> (StatusCode, String) {
    let status = response.status();
    assert_eq!(response.headers()[CONTENT_TYPE], Problem::CONTENT_TYPE);
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let problem: Problem = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem.status, status.as_u16());
    assert_eq!(Some(&*problem.title), status.canonical_reason());
    (status, problem.detail.into_owned())
}

async fn check_refused(body: impl Into<Body>, status: u16, detail: &str) {
    let request = Request::post("/v1/check").body(body.into()).unwrap();
    let problem = problem(send(data(app(Phase::Serving)), request).await).await;
    assert_eq!((problem.0.as_u16(), problem.1.as_str()), (status, detail));
}

#[tokio::test]
async fn a_body_that_is_not_json_is_400() {
    check_refused("", 400, "the body is not JSON: EOF while parsing a value at line 1 column 0").await;
    check_refused("{", 400, "the body is not JSON: EOF while parsing an object at line 1 column 1").await;
    check_refused("checks=1", 400, "the body is not JSON: expected value at line 1 column 1").await;
    check_refused(r#"{"checks":[]}x"#, 400, "the body is not JSON: trailing characters at line 1 column 14").await;
    check_refused(
        &b"{\"checks\":\"\xff\"}"[..],
        400,
        "the body is not JSON: invalid unicode code point at line 1 column 12",
    )
    .await;
}

#[tokio::test]
async fn a_field_that_is_wrong_is_422_with_its_path() {
    for list in ["[]", r#" [[{"policy":"api","key":"k"}]]"#] {
        check_refused(list, 422, "the body is a list; send an object with the fields that /openapi.json describes")
            .await;
    }
    check_refused("{}", 422, "missing field `checks` at line 1 column 2").await;
    check_refused(r#"{"checks":[{"key":"k"}]}"#, 422, "checks[0]: missing field `policy` at line 1 column 22").await;
    let cost = "checks[1].cost: a cost is a whole number from 0 to 9007199254740991 at line 1 column ";
    for bad in ["-1", "1.5", "9007199254740992", "18446744073709551616", "1e300"] {
        let body = format!(r#"{{"checks":[{{"policy":"api","key":"k"}},{{"policy":"api","key":"k","cost":{bad}}}]}}"#);
        check_refused(body, 422, &format!("{cost}{}", 71 + bad.len())).await;
    }
    check_refused(
        r#"{"checks":[{"policy":"api","key":[]}]}"#,
        422,
        "checks[0].key: a key has at least one part at line 1 column 35",
    )
    .await;
    check_refused(
        r#"{"checks":[{"policy":"api","key":7}]}"#,
        422,
        "checks[0].key: invalid type: integer `7`, expected a key: text, or an array of parts at line 1 column 34",
    )
    .await;
}

#[tokio::test]
async fn an_unknown_policy_is_404_with_its_path() {
    let body = r#"{"checks":[{"policy":"api","key":"k"},{"policy":"ap","key":"k"}]}"#;
    check_refused(body, 404, r#"checks[1].policy: there is no policy "ap""#).await;
}

#[tokio::test]
async fn what_is_too_large_is_413() {
    check_refused(vec![b' '; MAX_BODY_BYTES + 1], 413, "the body is over 262144 bytes; send several requests").await;
    let check = r#"{"policy":"api","key":"k"}"#;
    let body = format!(r#"{{"checks":[{}]}}"#, vec![check; MAX_CHECKS + 1].join(","));
    check_refused(body, 413, "checks: there are 65, the most is 64; send several requests").await;
    // At the limit it is the store's turn, and there is none.
    let body = format!(r#"{{"checks":[{}]}}"#, vec![check; MAX_CHECKS].join(","));
    check_refused(body, 503, NO_STORE).await;
}

/// A body that is announced and never comes.
struct Never;

impl hyper::body::Body for Never {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_408() {
    check_refused(Body::new(Never), 408, "the body did not arrive in time").await;
}

#[tokio::test]
async fn no_checks_are_allowed_and_any_content_type_is_json() {
    for content_type in ["application/json", "application/x-www-form-urlencoded", "nonsense"] {
        let request = Request::post("/v1/check").header(CONTENT_TYPE, content_type);
        // Unknown fields are those of a newer version.
        let request = request.body(Body::from(r#"{"checks":[],"later":1}"#)).unwrap();
        let response = send(data(app(Phase::Serving)), request).await;
        assert_eq!(response.status(), StatusCode::OK);
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            serde_json::json!({"allowed": true, "results": []})
        );
    }
}

async fn check_time_left(values: &[&str], status: u16, detail: &str) {
    let mut request = Request::post("/v1/check");
    for value in values {
        request = request.header("x-sluicegate-timeout-ms", *value);
    }
    let body = r#"{"checks":[{"policy":"api","key":"k"}]}"#;
    let problem = problem(send(data(app(Phase::Serving)), request.body(body.into()).unwrap()).await).await;
    assert_eq!((problem.0.as_u16(), problem.1.as_str()), (status, detail), "{values:?}");
}

#[tokio::test]
async fn the_callers_time_left_is_understood_or_refused() {
    check_time_left(&["0"], 503, "the store did not answer in time").await;
    let wrong = "x-sluicegate-timeout-ms: must be given once, as a whole number of milliseconds, or left out";
    for bad in ["", "-1", "+1", "1.5", "1s", "99999999999999999999999", "\u{e9}"] {
        check_time_left(&[bad], 400, wrong).await;
    }
    check_time_left(&["5", "5"], 400, wrong).await;
    // With time left it is the store's turn, and there is none.
    for good in ["1000", "18446744073709551615"] {
        check_time_left(&[good], 503, NO_STORE).await;
    }
}

async fn check_route(router: Router, method: Method, path: &str, status: u16, detail: &str) {
    let request = Request::builder().method(method.clone()).uri(path).body(Body::empty()).unwrap();
    let problem = problem(send(router, request).await).await;
    assert_eq!((problem.0.as_u16(), problem.1.as_str()), (status, detail), "{method} {path}");
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there_are_problems() {
    let (nothing, method) = (
        "there is nothing at this path",
        "this path is there, but not for this method; the Allow header names those that are",
    );
    let app = app(Phase::Serving);
    for path in ["/v1", "/v1/check/", "/v1/checks", "/metric", "//v1/check", "/v1/check%2F"] {
        check_route(data(Arc::clone(&app)), Method::GET, path, 404, nothing).await;
        check_route(admin(Arc::clone(&app)), Method::POST, path, 404, nothing).await;
    }
    check_route(data(Arc::clone(&app)), Method::GET, "/", 404, nothing).await;
    check_route(admin(Arc::clone(&app)), Method::POST, "/", 405, method).await;
    check_route(admin(Arc::clone(&app)), Method::POST, "/v1/check", 404, nothing).await;
    check_route(data(Arc::clone(&app)), Method::GET, "/metrics", 404, nothing).await;
    for wrong in [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS, Method::PATCH] {
        check_route(data(Arc::clone(&app)), wrong, "/v1/check", 405, method).await;
    }
    check_route(admin(app), Method::POST, "/healthz", 405, method).await;
}

#[tokio::test]
async fn a_405_names_the_methods_that_are_there() {
    let request = Request::get("/v1/check").body(Body::empty()).unwrap();
    assert_eq!(send(data(app(Phase::Serving)), request).await.headers()["allow"], "POST");
}

#[tokio::test]
async fn health_is_always_good_and_readiness_says_why_not() {
    for (phase, reason) in [
        (Phase::Serving, NO_STORE),
        (Phase::Draining, "the service is about to stop"),
        (Phase::Closing, "the service is about to stop"),
    ] {
        for router in [data, admin] {
            let request = Request::get("/healthz").body(Body::empty()).unwrap();
            assert_eq!(send(router(app(phase)), request).await.status(), StatusCode::OK);
            let app = app(phase);
            // Until the first attempt to connect is over, the reason is that it isn't.
            while app.limiter.ready().is_err_and(|error| error.to_string().ends_with("connecting")) {
                tokio::task::yield_now().await;
            }
            check_route(router(app), Method::GET, "/readyz", 503, reason).await;
        }
    }
}

#[tokio::test]
async fn answers_say_connection_close_once_stopping_but_never_in_http_2() {
    for (phase, version, expected) in [
        (Phase::Serving, axum::http::Version::HTTP_11, None),
        (Phase::Draining, axum::http::Version::HTTP_11, Some("close")),
        (Phase::Draining, axum::http::Version::HTTP_2, None),
    ] {
        let request = Request::get("/nothing").version(version).body(Body::empty()).unwrap();
        let response = send(data(app(phase)), request).await;
        assert_eq!(response.headers().get("connection").map(|value| value.to_str().unwrap()), expected);
    }
}

#[tokio::test]
async fn a_panic_is_a_problem() {
    async fn faulty() -> &'static str {
        panic!("a panic of this test")
    }
    let router = finish(Router::new().route("/faulty", routing::get(faulty)), app(Phase::Serving));
    check_route(router, Method::GET, "/faulty", 500, "a fault in the service; its log says more").await;
}

fn result(allowed: bool, retry_after_ms: Option<u64>) -> LimitResult {
    LimitResult {
        check: 0,
        policy: "api".into(),
        limit: "burst".into(),
        allowed,
        reason: if allowed { Reason::Ok } else { Reason::OverLimit },
        capacity: 10,
        window_ms: 10_000,
        remaining: 0,
        retry_after_ms,
        next_ms: 1_500,
        full_ms: 10_000,
        shadow: false,
    }
}

async fn check_answer(result: LimitResult, status: u16, retry_after: Option<&str>) {
    let answer = CheckAnswer { allowed: result.allowed, results: vec![result], charge: None, deny_cache_ms: None };
    let response = respond::answer(&answer);
    assert_eq!(response.status().as_u16(), status);
    let text = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(text("content-type").as_deref(), Some("application/json"));
    assert_eq!(text("retry-after").as_deref(), retry_after);
    assert_eq!(text("ratelimit").as_deref(), Some(r#""burst";r=0;t=2"#));
    assert_eq!(text("ratelimit-policy").as_deref(), Some(r#""burst";q=10;w=10"#));
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    assert_eq!(serde_json::from_slice::<CheckAnswer>(&body).unwrap(), answer);
}

#[tokio::test]
async fn decided_checks_are_200_or_429_with_their_headers() {
    check_answer(result(true, Some(0)), 200, None).await;
    check_answer(result(false, Some(1_001)), 429, Some("2")).await;
    check_answer(result(false, None), 429, None).await;
}

#[tokio::test]
async fn calls_are_always_answered_in_grpc() {
    let guard = || Guard::data(Some(&crate::config::Tokens::Text(crate::config::Secret::new("hunter2")))).unwrap();
    let check = async |path: &str, token: &str, code: &str, message: &str| {
        let request = Request::post(path).header(CONTENT_TYPE, "application/grpc+proto").header("authorization", token);
        let response = send(guarded(data(app(Phase::Serving)), guard()), request.body(Body::empty()).unwrap()).await;
        assert_eq!(
            (response.status(), &response.headers()[CONTENT_TYPE]),
            (StatusCode::OK, &"application/grpc".parse().unwrap())
        );
        let status = tonic::Status::from_header_map(response.headers()).unwrap();
        assert_eq!((format!("{:?}", status.code()), status.message()), (code.to_owned(), message), "{path}");
    };
    let limit = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    check(limit, "Bearer wrong", "Unauthenticated", "the token is none of those that are allowed here").await;
    check(
        "/envoy.service.ratelimit.v3.RateLimitService/Other",
        "Bearer hunter2",
        "Unimplemented",
        "there is nothing at this path",
    )
    .await;
    check(
        "/healthz",
        "",
        "Unimplemented",
        "this path is there, but not for this method; the Allow header names those that are",
    )
    .await;
}
