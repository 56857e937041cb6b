//! What becomes of a request, from its headers to the verdict. The same cases run natively and as wasm.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use common::{TestRequest, answered, asked, judge, question};
use sluicegate_filter_core::{
    Answer, Asked, Callout, Config, Decision, FailureKind, GrpcStatus, HeaderLine, Judgement, Outcome, Rejection,
    Verdict, decide, own_headers,
};

const MISSING: &str = r#"{"sha256":"0000000000000000000000000000000000000000000000000000000000000000"}"#;

/// The rule that a request is asked about.
fn check_rule(method: &str, path: &str, expected: Option<&str>) {
    let rule = question(&TestRequest::new(method, path)).map(|callout| callout.asked.last().name.to_string());
    assert_eq!(rule.as_deref(), expected, "{method} {path}");
}

#[test]
fn the_first_rule_that_matches_decides() {
    check_rule("POST", "/login", Some("login"));
    check_rule("GET", "/api/things?page=2", Some("api"));
    check_rule("GET", "/pairs", Some("pair"));
    check_rule("GET", "/login", None);
    check_rule("post", "/login", None);
    check_rule("POST", "/login/", None);
    check_rule("GET", "/api", None);
    check_rule("GET", "/", None);
    check_rule("GET", "/health", None);
    check_rule("CONNECT", "", None);
}

#[test]
fn another_spelling_is_no_way_around_a_rule() {
    for path in
        ["//login", "/./login", "/a/../login", "/%6cogin", "/%6Cogin?x", "/api/%2e%2e/login", "/health/../login"]
    {
        check_rule("POST", path, Some("login"));
    }
    check_rule("POST", "/api//../login", Some("api"));
    check_rule("GET", "/health/..//api/x", Some("api"));
    check_rule("GET", "/api/..", None);
}

/// The body of the question, by the checks in it.
fn check_body(request: &TestRequest, expected_checks: &str) {
    let body = question(request).unwrap().body;
    assert_eq!(String::from_utf8(body).unwrap(), format!(r#"{{"checks":[{expected_checks}]}}"#));
}

#[test]
fn each_limit_of_the_rule_is_one_check() {
    check_body(
        &TestRequest::new("POST", "/login").header("x-account", "bob"),
        r#"{"policy":"login","key":"203.0.113.7","cost":1},{"policy":"login-account","key":"bob","cost":1}"#,
    );
}

#[test]
fn secrets_leave_as_digests_alone() {
    // SHA-256 of "abc" (FIPS 180-4).
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    check_body(
        &TestRequest::new("GET", "/api/").header("X-API-Key", "abc"),
        &format!(r#"{{"policy":"api","key":[{{"sha256":"{digest}"}}],"cost":2}}"#),
    );
}

#[test]
fn a_pepper_goes_into_the_digests_of_secrets() {
    let config = common::CONFIG.replacen('{', r#"{ "key_pepper": "Jefe","#, 1);
    let config = Config::parse(config.as_bytes()).unwrap();
    let request = TestRequest::new("GET", "/api/").header("x-api-key", "what do ya want for nothing?");
    let Decision::Ask(asked) = decide(&config, &request) else { panic!("not asked") };
    let callout = Callout::build(&config.service, asked, &request);
    // RFC 4231 test case 2.
    let digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
    assert!(String::from_utf8(callout.body).unwrap().contains(digest));
}

fn check_pair(request: &TestRequest, expected_parts: &str) {
    check_body(request, &format!(r#"{{"policy":"pair","key":[{expected_parts}],"cost":1}}"#));
}

#[test]
fn a_missing_or_doubled_part_is_one_shared_subject() {
    let pair = || TestRequest::new("GET", "/pair");
    check_pair(&pair(), &format!(r#""203.0.113.7",{MISSING}"#));
    check_pair(&pair().header("x-tenant", "a").header("x-tenant", "b"), &format!(r#""203.0.113.7",{MISSING}"#));
    check_pair(&pair().header("x-tenant", "a").header("X-TENANT", "a"), &format!(r#""203.0.113.7",{MISSING}"#));
    check_pair(&pair().header("x-tenant", ""), r#""203.0.113.7","""#);
    check_pair(&pair().header("x-tenant", " a\t"), r#""203.0.113.7","a""#);
    check_pair(&pair().source(None), &format!("{MISSING},{MISSING}"));
    check_pair(&pair().source(Some(b"/run/app.sock")), &format!("{MISSING},{MISSING}"));
}

#[test]
fn addresses_and_bytes_become_parts() {
    let pair = || TestRequest::new("GET", "/pair").header("x-tenant", "t");
    check_pair(&pair().source(Some(b"[2001:db8::1]:443")), r#""2001:db8::/64","t""#);
    check_pair(&pair().source(Some(b"[::ffff:203.0.113.7]:443")), r#""203.0.113.7","t""#);
    check_pair(&TestRequest::new("GET", "/pair").header("x-tenant", b"a\xff"), r#""203.0.113.7",{"b64":"Yf8="}"#);
}

#[test]
fn a_long_value_makes_no_long_question() {
    let long = TestRequest::new("GET", "/pair").header("x-tenant", "\"".repeat(60_000));
    let body = question(&long).unwrap().body;
    assert!(body.len() < 200 && String::from_utf8(body).unwrap().contains("sha256"));
    let longest = TestRequest::new("GET", "/pair").header("x-tenant", "x".repeat(256));
    check_pair(&longest, &format!(r#""203.0.113.7","{}""#, "x".repeat(256)));
}

#[test]
fn the_callout_carries_its_time_and_the_trace() {
    let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = TestRequest::new("POST", "/login").header("traceparent", traceparent).header("x-request-id", "r-1");
    let callout = question(&request).unwrap();
    assert_eq!(callout.timeout.ms(), 50);
    let headers: Vec<_> = callout.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(
        headers,
        [
            (":method", "POST"),
            (":path", "/v1/check"),
            (":authority", "limits.example"),
            ("content-type", "application/json"),
            ("x-envoy-retry-on", "connect-failure,refused-stream"),
            ("x-envoy-max-retries", "1"),
            ("x-sluicegate-timeout-ms", "48"),
            ("authorization", "Bearer token"),
            ("traceparent", traceparent),
            ("x-request-id", "r-1"),
        ]
    );
}

#[test]
fn ids_that_are_not_well_formed_stay_behind() {
    let copied = |request: TestRequest| {
        let headers = question(&request).unwrap().headers;
        headers.into_iter().filter(|(name, _)| ["traceparent", "x-request-id"].contains(&name.as_str())).count()
    };
    let request = || TestRequest::new("POST", "/login");
    assert_eq!(copied(request().header("x-request-id", "fine")), 1);
    assert_eq!(copied(request().header("x-request-id", "a\r\nx-evil: 1")), 0);
    assert_eq!(copied(request().header("x-request-id", b"\xff")), 0);
    assert_eq!(copied(request().header("x-request-id", "")), 0);
    assert_eq!(copied(request().header("x-request-id", "x".repeat(129))), 0);
    assert_eq!(copied(request().header("x-request-id", "a").header("x-request-id", "b")), 0);
    assert_eq!(copied(request().header("traceparent", "00-nonsense")), 0);
}

#[test]
fn our_headers_are_found_whoever_sent_them() {
    use sluicegate_filter_core::Request as _;
    let request = TestRequest::new("GET", "/").header("x-sluicegate-reason", "ok").header("X-SLUICEGATE", b"\xff");
    let own: Vec<_> = own_headers(request.headers()).collect();
    assert_eq!(own, [&b"x-sluicegate-reason"[..], b"X-SLUICEGATE"]);
}

/// An answer with one limit for each (limit, reason, wait in ms).
fn answer(limits: &[(&str, &str, Option<u64>)]) -> String {
    let result = |(limit, reason, wait): &(&str, &str, Option<u64>)| {
        let (allowed, wait) = (*reason == "ok", wait.map_or("null".to_owned(), |wait| wait.to_string()));
        format!(
            r#"{{"check":0,"policy":"login","limit":"{limit}","allowed":{allowed},"reason":"{reason}","capacity":5,
                "window_ms":60000,"remaining":3,"retry_after_ms":{wait},"next_ms":1200,"full_ms":24000,"new":1}}"#
        )
    };
    let allowed = limits.iter().all(|(_, reason, _)| *reason == "ok");
    let results: Vec<_> = limits.iter().map(result).collect();
    format!(r#"{{"allowed":{allowed},"results":[{}],"new":true}}"#, results.join(","))
}

fn lines(headers: &[HeaderLine]) -> Vec<String> {
    headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str())).collect()
}

fn passed(judgement: &Judgement) -> Vec<String> {
    match &judgement.verdict {
        Verdict::Pass { response_headers, .. } => lines(response_headers),
        Verdict::Reject(rejection) => panic!("rejected: {rejection:?}"),
    }
}

fn rejected(judgement: Judgement) -> Rejection {
    match judgement.verdict {
        Verdict::Reject(rejection) => rejection,
        Verdict::Pass { .. } => panic!("passed"),
    }
}

#[test]
fn an_allowed_request_passes_with_the_state_of_its_limits() {
    let judgement = answered(&asked("POST", "/login"), 200, answer(&[("burst", "ok", Some(0))]));
    assert_eq!(passed(&judgement), [r#"ratelimit: "burst";r=3;t=2"#, r#"ratelimit-policy: "burst";q=5;w=60"#]);
    assert_eq!(judgement.failure, None);
}

#[test]
fn a_denied_request_is_answered_with_429() {
    let body = answer(&[("burst", "over_limit", Some(1_500)), ("day", "ok", Some(0))]);
    let judgement = answered(&asked("POST", "/login"), 429, body);
    assert_eq!(judgement.failure, None);
    let rejection = rejected(judgement);
    assert_eq!((rejection.status.code(), rejection.grpc_status), (429, GrpcStatus::ResourceExhausted));
    assert_eq!(rejection.details, "sluicegate_over_limit");
    assert_eq!(
        lines(&rejection.headers),
        [
            "x-sluicegate-reason: over_limit",
            "content-type: application/problem+json",
            "retry-after: 2",
            r#"ratelimit: "burst";r=3;t=2"#,
            r#"ratelimit-policy: "burst";q=5;w=60, "day";q=5;w=60"#,
        ]
    );
    assert_eq!(
        rejection.body,
        r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Quota exceeded","status":429,"violated-policies":["burst"]}"#
    );
}

#[test]
fn a_denial_that_waiting_can_not_help_has_no_retry_after() {
    let rejection = rejected(answered(&asked("GET", "/api/"), 429, answer(&[("burst", "never", None)])));
    assert_eq!((rejection.status.code(), rejection.details), (429, "sluicegate_never"));
    let lines = lines(&rejection.headers);
    assert!(lines.contains(&"x-sluicegate-reason: never".to_owned()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("retry-after")), "{lines:?}");
}

#[test]
fn limits_of_several_policies_are_told_apart() {
    let body = answer(&[("burst", "over_limit", Some(1))]).replace(
        r#""results":["#,
        r#""results":[{"check":1,"policy":"account","limit":"burst","allowed":false,"reason":"banned","capacity":1,
            "window_ms":1,"remaining":0,"retry_after_ms":5000,"next_ms":1,"full_ms":1},"#,
    );
    let rejection = rejected(answered(&asked("POST", "/login"), 429, body));
    assert_eq!(rejection.details, "sluicegate_banned");
    assert!(rejection.body.contains(r#""violated-policies":["account.burst","login.burst"]"#), "{}", rejection.body);
    assert!(lines(&rejection.headers).contains(&"retry-after: 5".to_owned()));
}

#[test]
fn grpc_clients_get_a_message_instead_of_a_document() {
    let request = TestRequest::new("POST", "/pair").header("content-type", "application/grpc+proto");
    let asked = question(&request).unwrap().asked;
    let denied = rejected(answered(&asked, 429, answer(&[("burst", "over_limit", Some(1))])));
    assert_eq!((denied.grpc_status.code(), denied.body.as_str()), (8, "over_limit: burst"));
    let failed = rejected(judge(&asked, Outcome::Lost));
    assert_eq!(failed.grpc_status.code(), 14);
    assert_eq!(lines(&failed.headers), ["x-sluicegate-reason: failure_closed", "retry-after: 1"]);
}

#[test]
fn nothing_from_an_answer_breaks_a_header() {
    let body = answer(&[("a\\r\\nset-cookie: x\\u0000", "over_limit", Some(1))]);
    let rejection = rejected(answered(&asked("GET", "/api/"), 429, body));
    for line in lines(&rejection.headers) {
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    assert!(!rejection.body.contains("\\r"), "{}", rejection.body);
}

/// The failure verdict of each rule, and the kind it is counted as.
fn check_failure(outcome: Outcome<'_>, expected: FailureKind) {
    let kind = |judgement: &Judgement| judgement.failure.as_ref().map(|failure| failure.kind);
    let open = judge(&asked("GET", "/api/"), outcome);
    assert_eq!(kind(&open), Some(expected), "{outcome:?}");
    assert_eq!(passed(&open), ["x-sluicegate-reason: failure_open"], "{outcome:?}");
    for (method, path, status) in [("POST", "/login", 429), ("GET", "/pair", 503)] {
        let closed = judge(&asked(method, path), outcome);
        assert_eq!(kind(&closed), Some(expected), "{outcome:?}");
        let rejection = rejected(closed);
        assert_eq!(rejection.status.code(), status, "{outcome:?}");
        assert_eq!((rejection.grpc_status, rejection.details), (GrpcStatus::Unavailable, "sluicegate_failure_closed"));
        let expected =
            ["x-sluicegate-reason: failure_closed", "content-type: application/problem+json", "retry-after: 1"];
        assert_eq!(lines(&rejection.headers), expected, "{outcome:?}");
        assert!(rejection.body.contains("#temporary-reduced-capacity"), "{}", rejection.body);
    }
}

fn check_answer(status: u16, marked: bool, body: &str, expected: FailureKind) {
    check_failure(Outcome::Answered(Answer { status: Some(status), marked, body: body.as_bytes() }), expected);
}

#[test]
fn a_callout_without_an_answer_is_a_failure() {
    check_failure(Outcome::Refused, FailureKind::DispatchRefused);
    check_failure(Outcome::Lost, FailureKind::Transport);
    check_answer(504, false, "upstream request timeout", FailureKind::Timeout);
    check_answer(503, false, "upstream connect error", FailureKind::Transport);
}

#[test]
fn an_answer_of_something_else_is_a_failure() {
    let (allowed, denied) = (answer(&[("a", "ok", Some(0))]), answer(&[("a", "over_limit", Some(1))]));
    check_answer(200, false, &allowed, FailureKind::Unmarked);
    check_answer(429, false, &denied, FailureKind::Unmarked);
    check_answer(500, false, "", FailureKind::Unmarked);
    check_answer(404, false, "", FailureKind::Unmarked);
}

#[test]
fn an_answer_that_makes_no_sense_is_a_failure() {
    let (allowed, denied) = (answer(&[("a", "ok", Some(0))]), answer(&[("a", "over_limit", Some(1))]));
    check_answer(200, true, "", FailureKind::Malformed);
    check_answer(200, true, "garbage", FailureKind::Malformed);
    check_answer(200, true, "{}", FailureKind::Malformed);
    check_answer(200, true, &"[".repeat(1000), FailureKind::Malformed);
    check_answer(200, true, r#"{"allowed":true,"results":[]}"#, FailureKind::Malformed);
    check_answer(200, true, &denied, FailureKind::Malformed);
    check_answer(429, true, &allowed, FailureKind::Malformed);
    check_answer(429, true, r#"{"title":"busy"}"#, FailureKind::Malformed);
    check_answer(
        429,
        true,
        &denied.replace(r#""allowed":false,"results""#, r#""allowed":true,"results""#),
        FailureKind::Malformed,
    );
    check_answer(429, true, r#"{"allowed":false,"results":[]}"#, FailureKind::Malformed);
    check_answer(200, true, &format!("{allowed}{}", " ".repeat(1 << 20)), FailureKind::Malformed);
    check_answer(204, true, "", FailureKind::Malformed);
    check_answer(302, true, "", FailureKind::Malformed);
    check_failure(Outcome::Answered(Answer { status: None, marked: true, body: b"" }), FailureKind::Malformed);
    check_failure(
        Outcome::Answered(Answer { status: Some(200), marked: true, body: b"\xff\x80\x00" }),
        FailureKind::Malformed,
    );
}

#[test]
fn an_error_of_the_service_is_a_failure_with_its_words() {
    check_answer(503, true, "", FailureKind::Unavailable);
    check_answer(500, true, "garbage", FailureKind::Unavailable);
    check_answer(400, true, "", FailureKind::Config);
    let body = r#"{"type":"about:blank","title":"Not found","status":404,"detail":"no policy \"logn\"\n"}"#;
    check_answer(404, true, body, FailureKind::Config);
    let failure = answered(&asked("POST", "/login"), 404, body).failure.unwrap();
    assert_eq!(failure.detail, r#"status 404: Not found no policy "logn""#);
}

#[test]
fn a_shadow_limit_denies_nobody() {
    let asked: Asked = asked("GET", "/api/");
    let body = answer(&[("a", "ok", Some(0))]).replace(
        r#""results":["#,
        r#""results":[{"check":0,"policy":"p","limit":"s","allowed":false,"reason":"over_limit","capacity":1,
            "window_ms":1,"remaining":0,"retry_after_ms":9,"next_ms":1,"full_ms":1,"shadow":true},"#,
    );
    let judgement = answered(&asked, 200, body);
    assert_eq!(passed(&judgement)[0], "x-sluicegate-shadow: over_limit");
    assert_eq!(passed(&judgement).len(), 3);
}
