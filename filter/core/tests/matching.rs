//! Which rules a request is under. The same cases run natively and as wasm.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use common::{TestRequest, asked_by};

const LIMITS: &str = r#""limits":[{"policy":"p","key":["client_ip"]}]"#;

fn is_limited(matcher: &str, request: &TestRequest) -> bool {
    asked_by(&format!(r#"{{"name":"r","match":{matcher},{LIMITS}}}"#), request).is_some()
}

#[track_caller]
fn check(matcher: &str, request: &TestRequest, expected: bool) {
    assert_eq!(is_limited(matcher, request), expected, "{matcher}");
}

#[track_caller]
fn check_paths(path_match: &str, matching: &[&str], others: &[&str]) {
    for (paths, expected) in [(matching, true), (others, false)] {
        for path in paths {
            let limited = is_limited(&format!(r#"{{"path":{{{path_match}}}}}"#), &TestRequest::new("GET", path));
            assert_eq!(limited, expected, "{path_match} {path}");
        }
    }
}

#[test]
fn case_and_a_slash_at_the_end_matter_unless_told_otherwise() {
    check_paths(r#""exact":"/login""#, &["/login", "//login", "/%6cogin?x"], &["/login/", "/Login", "/login;x", "/"]);
    check_paths(r#""exact":"/Login","ignore_case":true"#, &["/login", "/LOGIN", "/%4Cogin"], &["/login/", "/logins"]);
    let both = r#""exact":"/login","ignore_case":true,"trailing_slash":"ignore""#;
    check_paths(both, &["/login", "/LOGIN/", "/login//", "/login/."], &["/login/x", "/login;x", "/login%2f"]);
    check_paths(r#""exact":"/login/","trailing_slash":"ignore""#, &["/login", "/login/"], &["/"]);
    check_paths(r#""exact":"/","trailing_slash":"ignore""#, &["/", "", "//"], &["/a"]);
    check_paths(r#""exact":"/login","ignore_case":false,"trailing_slash":"strict""#, &["/login"], &["/login/"]);
}

#[test]
fn a_prefix_is_of_characters_and_may_forgive_its_slash() {
    check_paths(r#""prefix":"/api/""#, &["/api/", "/api/x", "/x/../api/y"], &["/api", "/apiary", "/API/x", "/v/api/"]);
    check_paths(r#""prefix":"/api/","trailing_slash":"ignore""#, &["/api", "/api/", "/api/x"], &["/apiary", "/ap"]);
    check_paths(r#""prefix":"/API/","ignore_case":true"#, &["/api/x", "/Api/x"], &["/api"]);
    check_paths(r#""prefix":"/""#, &["/", "/x", "", "*"], &[]);
}

#[test]
fn a_text_too_long_for_regular_expressions_is_no_way_around_a_limit() {
    let rule = |name: &str, matcher: &str| {
        format!(r#"{{"name":"{name}","match":{matcher},"limits":[{{"policy":"{name}","key":["method"]}}]}}"#)
    };
    let rules = [
        r#"{"name":"health","match":{"path":{"regex":"/health/.*"}},"limits":[]}"#.to_owned(),
        rule("cheap", r#"{"path":{"regex":"/cheap/.*"}}"#),
        rule("posts", r#"{"path":{"regex":"/.*"},"methods":"POST"}"#),
        rule("plan", r#"{"headers":[{"name":"x-plan","regex":"gold"}]}"#),
        rule("login", r#"{"path":{"prefix":"/login"}}"#),
        rule("rest", "{}"),
    ]
    .join(",");
    let check = |request: TestRequest, expected: &[&str]| assert_eq!(policies(&rules, &request), expected);
    let (get, long) = (|path: String| TestRequest::new("GET", path), "x".repeat(8_192));
    check(get("/login;x".to_owned()), &["login"]);
    check(get(format!("/login;{long}")), &["cheap", "login"]);
    check(get(format!("/cheap/{long}")), &["cheap", "rest"]);
    check(get(format!("/health/{long}")), &["cheap", "rest"]);
    check(get("/health/x".to_owned()), &[]);
    check(get("/login".to_owned()).header("x-plan", &long), &["login"]);
    check(get("/login".to_owned()).header("x-plan", format!("{long}x")), &["plan", "login"]);
}

#[test]
fn a_regular_expression_is_for_the_whole_path() {
    check_paths(
        r#""regex":"/v[0-9]+/users""#,
        &["/v1/users", "/v22/users?x"],
        &["/v1/users/", "/a/v1/users", "/v/users"],
    );
    check_paths(r#""regex":"/login(;.*)?""#, &["/login", "/login;x", "/./login;a=b"], &["/login/", "/logins"]);
    check_paths(
        r#""regex":"/Log(in|out)","ignore_case":true,"trailing_slash":"ignore""#,
        &["/LOGOUT/", "/login"],
        &["/log"],
    );
    check_paths(r#""regex":"/.*""#, &["/", "/\u{e9}", "/%0a"], &[]);
}

#[test]
fn a_template_is_for_segments() {
    let orders = r#""template":"/Users/{id}/orders""#;
    check_paths(
        orders,
        &["/Users/7/orders", "/Users/%2F/orders"],
        &["/Users//orders", "/users/7/orders", "/Users/7/orders/"],
    );
    let lax = r#""template":"/Users/{id}/orders/","ignore_case":true,"trailing_slash":"ignore""#;
    check_paths(lax, &["/users/7/ORDERS", "/Users/7/orders/"], &["/users/orders", "/users/7/orders/1"]);
    check_paths(r#""template":"/t/{t}/**""#, &["/t/1", "/t/1/2/3"], &["/t/", "/t"]);
}

#[test]
fn hosts_are_compared_without_port_and_case() {
    let to = |authority: &str| TestRequest::new("GET", "/").header(":authority", authority);
    let hosts = r#"{"hosts":["example.com","*.example.org","[2001:db8::1]"]}"#;
    for authority in ["example.com", "EXAMPLE.com:8443", "example.com.", "a.b.example.org:1", "[2001:DB8:0::1]:443"] {
        check(hosts, &to(authority), true);
    }
    for authority in ["example.org", "www.example.com", "example.com.evil", "2001:db8::2", "", ":80"] {
        check(hosts, &to(authority), false);
    }
    check(hosts, &TestRequest::new("GET", "/"), false);
    check(r#"{"hosts":"example.com"}"#, &to("example.com"), true);
}

#[test]
fn a_header_matches_by_what_it_is() {
    let sent = |value: &[u8]| TestRequest::new("GET", "/").header("X-Plan", value);
    let none = TestRequest::new("GET", "/");
    let is = |condition: &str| format!(r#"{{"headers":[{{"name":"x-plan",{condition}}}]}}"#);
    check(&is(r#""present":true"#), &sent(b""), true);
    check(&is(r#""present":true"#), &none, false);
    check(&is(r#""absent":true"#), &none, true);
    check(&is(r#""absent":true"#), &sent(b""), false);
    check(&is(r#""equals":"free""#), &sent(b" free\t"), true);
    check(&is(r#""equals":"free""#), &sent(b"Free"), false);
    check(&is(r#""equals":"""#), &none, false);
    check(&is(r#""regex":"fr.*""#), &sent(b"fr\xff\xfe"), true);
    check(&is(r#""regex":"fr""#), &sent(b"free"), false);
    let both = r#"{"headers":[{"name":"x-plan","present":true},{"name":"x-bot","absent":true}]}"#;
    check(both, &sent(b"x"), true);
    check(both, &sent(b"x").header("x-bot", "1"), false);
}

#[test]
fn a_second_line_is_no_way_out_of_limits_and_none_into_an_exemption() {
    let lines = |values: &[&str]| {
        values.iter().fold(TestRequest::new("GET", "/"), |request, value| request.header("x-plan", value))
    };
    for condition in [r#""equals":"free""#, r#""regex":"fr[e]+""#] {
        let condition = format!(r#"{{"headers":[{{"name":"x-plan",{condition}}}]}}"#);
        for values in [&["free"][..], &["free", "gold"], &["gold", "free"], &["free", "free"]] {
            check(&condition, &lines(values), true);
        }
        let exempt = format!(r#"{{"name":"e","match":{condition},"limits":[]}},{{"name":"r",{LIMITS}}}"#);
        for (values, exempted) in
            [(&["free"][..], true), (&["free", "free"], true), (&["free", "gold"], false), (&["gold", "free"], false)]
        {
            assert_eq!(asked_by(&exempt, &lines(values)).is_none(), exempted, "{values:?}");
        }
    }
}

#[test]
fn clients_match_by_ranges_of_addresses() {
    let from = |address: &str| TestRequest::new("GET", "/").source(Some(address.as_bytes()));
    let ranges = r#"{"client":["10.0.0.0/8","2001:db8::/32","192.0.2.1"]}"#;
    for address in ["10.1.2.3:4", "[::ffff:10.1.2.3]:4", "[2001:db8:ffff::1%eth0]:443", "192.0.2.1:0"] {
        check(ranges, &from(address), true);
    }
    for address in ["11.0.0.1:4", "[2001:db9::1]:4", "192.0.2.2:0", "/run/app.sock", ""] {
        check(ranges, &from(address), false);
    }
    check(ranges, &TestRequest::new("GET", "/").source(None), false);
}

#[test]
fn a_route_of_the_proxy_matches_by_name() {
    let on = |route: &str| TestRequest::new("GET", "/").property("xds.route_name", route);
    check(r#"{"route":["a","b"]}"#, &on("b"), true);
    check(r#"{"route":"a"}"#, &on("b"), false);
    check(r#"{"route":"a"}"#, &TestRequest::new("GET", "/"), false);
}

#[test]
fn every_condition_must_hold() {
    let matcher = r#"{"methods":"POST","path":{"exact":"/a"},"hosts":"x.y"}"#;
    let request = |method, path, host| TestRequest::new(method, path).header(":authority", host);
    check(matcher, &request("POST", "/a", "x.y"), true);
    check(matcher, &request("GET", "/a", "x.y"), false);
    check(matcher, &request("POST", "/b", "x.y"), false);
    check(matcher, &request("POST", "/a", "x.z"), false);
    check("{}", &request("FOO", "", ""), true);
}

/// The policies that a request is asked about.
/// The policies that are asked about a request.
fn policies(rules: &str, request: &TestRequest) -> Vec<String> {
    let asked = asked_by(rules, request);
    asked.map_or(Vec::new(), |asked| asked.question.checks.into_iter().map(|check| check.policy).collect())
}

#[test]
fn a_rule_that_continues_adds_its_limits_to_the_next() {
    let rule = |name: &str, path: &str, rest: &str| {
        format!(
            r#"{{"name":"{name}","match":{{"path":{{"prefix":"{path}"}}}},"limits":[{{"policy":"{name}","key":["client_ip"]}}]{rest}}}"#
        )
    };
    let on = r#","continue":true"#;
    let rules = [
        rule("all", "/", on),
        rule("a", "/a", on),
        r#"{"name":"health","match":{"path":{"exact":"/a/health"}},"limits":[]}"#.to_owned(),
        rule("ab", "/a/b", ""),
        rule("last", "/a", r#","continue":false"#),
        rule("never", "/a", ""),
    ]
    .join(",");
    assert_eq!(policies(&rules, &TestRequest::new("GET", "/")), ["all"]);
    assert_eq!(policies(&rules, &TestRequest::new("GET", "/a")), ["all", "a", "last"]);
    assert_eq!(policies(&rules, &TestRequest::new("GET", "/a/b")), ["all", "a", "ab"]);
    // Exempt from the rules below, not from those that were joined before.
    assert_eq!(policies(&rules, &TestRequest::new("GET", "/a/health")), ["all", "a"]);
}
