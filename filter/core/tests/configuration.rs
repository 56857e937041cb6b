//! Which configurations are accepted, and what the others are told. The same cases run natively and as wasm.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use std::rc::Rc;

use sluicegate_filter_core::{
    BreakerConfig, Config, ConfigError, DenyCacheConfig, LabelForm, LimitHeaders, LocalLimit, Matcher, OnFailure,
    RejectStatus, RejectStyle, Span, config::Rule,
};

/// The error for a configuration, as it would be logged.
fn error(json: &str) -> String {
    Config::parse(json.as_bytes()).expect_err(json).to_string()
}

/// A configuration with one rule of these fields must fail with this.
fn check_rule(fields: &str, expected: &str) {
    let fields = if fields.contains("limits") { fields.to_owned() } else { format!(r#"{fields}, "limits": []"#) };
    let error = error(&format!(r#"{{"service":{{"cluster":"c"}},"rules":[{{"name":"a","limits":[]}},{{{fields}}}]}}"#));
    assert!(error.starts_with(expected), "{fields}: {error}");
}

fn check_limit(fields: &str, expected: &str) {
    check_rule(&format!(r#""name":"b","limits":[{{{fields}}}]"#), &format!("rules[1].limits[0]{expected}"));
}

fn check_service(fields: &str, expected: &str) {
    let error = error(&format!(r#"{{"service":{{{fields}}},"rules":[]}}"#));
    assert!(error.starts_with(expected), "{fields}: {error}");
}

#[test]
fn the_example_is_accepted() {
    let config = common::config();
    let names: Vec<_> = config.rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names, ["health", "login", "api", "pair"]);
    let timeouts: Vec<_> = config.rules.iter().map(|rule| rule.timeout.ms()).collect();
    assert_eq!(timeouts, [25, 50, 25, 25]);
    assert_eq!(config.rules[2].limits[0].cost.most().tokens(), 2);
}

#[test]
fn what_is_left_out_has_its_documented_default() {
    let json = r#"{"service":{"cluster":"c"},"rules":[{"name":"a","limits":[{"policy":"p","key":["client_ip"]}]}]}"#;
    let config = Config::parse(json.as_bytes()).unwrap();
    assert_eq!((config.service.authority.as_str(), config.service.headers.len()), ("sluicegate", 0));
    let rule = &config.rules[0];
    assert_eq!((rule.timeout.ms(), rule.on_failure, rule.limits[0].cost.most().tokens()), (25, OnFailure::Open, 1));
    assert_eq!(rule.matcher, Matcher::default());
}

#[test]
fn each_form_of_on_failure_is_understood() {
    let on_failure = |form: &str| {
        let json =
            format!(r#"{{"service":{{"cluster":"c"}},"rules":[{{"name":"a","limits":[],"on_failure":{form}}}]}}"#);
        Config::parse(json.as_bytes()).unwrap().rules[0].on_failure
    };
    let closed = |code| OnFailure::Closed { status: RejectStatus::new(code).unwrap() };
    assert_eq!(on_failure(r#""open""#), OnFailure::Open);
    assert_eq!(on_failure(r#""closed""#), closed(429));
    assert_eq!(on_failure(r#"{"closed":{}}"#), closed(429));
    assert_eq!(on_failure(r#"{"closed":{"status":503}}"#), closed(503));
    assert_eq!(on_failure(r#"{"closed":{"status":503.0}}"#), closed(503));
}

#[test]
fn no_configuration_is_an_error_of_its_own() {
    for nothing in ["", " \n"] {
        assert_eq!(Config::parse(nothing.as_bytes()).err(), Some(ConfigError::Empty));
    }
    assert_eq!(error("{}"), "configuration: missing field `service`");
    assert_eq!(error("[]"), "configuration: must be an object, not a list");
    assert!(error("{").starts_with("the configuration is not JSON: EOF"));
    assert!(
        error(r#"{"service":{"cluster":"c"},"rules":[]} x"#).starts_with("the configuration is not JSON: trailing")
    );
    assert!(Config::parse(b"\xff\xfe").is_err());
    for nested in ["[", r#"{"rules":"#, r#"{"rules":[{"match":"#] {
        assert!(error(&nested.repeat(100_000)).contains("recursion limit"), "{nested}");
    }
}

#[test]
fn unknown_fields_are_named_with_their_path() {
    assert_eq!(
        error(r#"{"service":{"cluster":"c"},"rules":[],"braker":{}}"#).split(',').next(),
        Some("braker: unknown field `braker`")
    );
    check_service(r#""cluster":"c","clutser":"c""#, "service.clutser: unknown field `clutser`");
    check_rule(r#""name":"b","contine":true"#, "rules[1].contine: unknown field `contine`");
    check_rule(r#""name":"b","match":{"host":"x"}"#, "rules[1].match.host: unknown field `host`, expected one of");
    check_rule(r#""name":"b","match":{"path":{"glob":"/"}}"#, "rules[1].match.path.glob: unknown field `glob`");
    check_limit(r#""policy":"p","key":["client_ip"],"shade":true"#, ".shade: unknown field `shade`");
    check_limit(r#""policy":"p","key":[{"header":"h","scret":true}]"#, ".key[0].scret: unknown field `scret`");
    check_rule(r#""name":"b","on_failure":{"locl":{}}"#, "rules[1].on_failure.locl: unknown field `locl`");
    check_rule(
        r#""name":"b","on_failure":{"closed":{"body":""}}"#,
        "rules[1].on_failure.closed.body: unknown field `body`",
    );
}

#[test]
fn an_error_never_shows_what_may_be_a_secret() {
    let text = "must be a text in quotes, not ";
    assert_eq!(
        error(r#"{"service":{"cluster":"c"},"key_pepper":8675309,"rules":[]}"#),
        format!("key_pepper: {text}a number")
    );
    for value in ["8675309", "[8675309]", r#"{"a":8675309}"#] {
        let error = error(&format!(r#"{{"service":{{"cluster":"c","headers":{{"a":{value}}}}},"rules":[]}}"#));
        assert!(error.contains(text) && !error.contains("8675309"), "{error}");
    }
}

#[test]
fn missing_and_empty_fields_are_errors() {
    check_service("", "service: missing field `cluster`");
    check_rule(r#""match":{}"#, "rules[1]: missing field `name`");
    check_limit(r#""key":["client_ip"]"#, ": missing field `policy`");
    check_limit(r#""policy":"p""#, ": missing field `key`");
    check_limit(r#""policy":"p","key":[]"#, ".key: a key has 1 to 8 parts");
    check_limit(r#""policy":"p","key":[{}]"#, ".key[0]: give one of `header`, `cookie`,");
    // What an empty value in YAML becomes.
    check_rule(r#""name":"b","on_failure":null"#, "rules[1].on_failure: use open, closed, {closed");
    check_rule(r#""name":"b","timeout":null"#, "rules[1].timeout: must be a text, not null");
    check_rule(r#""name":"b","match":null"#, "rules[1].match: must be an object, not null");
    check_rule(r#""name":"b","limits":null"#, "rules[1].limits: must be a list, not null");
    // A list of values in the order of the fields is no object.
    check_rule(r#""name":"b","match":[]"#, "rules[1].match: must be an object, not a list");
    check_rule(r#""name":"b","match":{"path":["/"]}"#, "rules[1].match.path: must be an object, not a list");
    check_rule(
        r#""name":"b","on_failure":{"closed":[503]}"#,
        "rules[1].on_failure.closed: must be an object, not a list",
    );
    check_rule(r#""name":"b","limits":[["p",["client_ip"]]]"#, "rules[1].limits[0]: must be an object, not a list");
}

#[test]
fn bad_values_are_named_with_their_path() {
    check_service(r#""cluster":"""#, "service.cluster: use printable characters");
    check_service(r#""cluster":"c","authority":"a b""#, "service.authority: use printable characters");
    check_service(r#""cluster":"c","timeout":"0ms""#, "service.timeout: a timeout is a whole number");
    check_service(r#""cluster":"c","timeout":25"#, "service.timeout: must be a text, not a number");
    check_rule(r#""name":"a b""#, "rules[1].name: \"a b\" is not a name");
    check_rule(r#""name":"a""#, "rules[1].name: \"a\" is the name of rules[0] too");
    check_rule(r#""name":"b","timeout":"0.5ms""#, "rules[1].timeout: a timeout is a whole number");
    check_rule(r#""name":"b","match":{"methods":[]}"#, "rules[1].match.methods: list at least one");
    check_rule(r#""name":"b","match":{"methods":["get"]}"#, "rules[1].match.methods[0]: write methods in capitals");
    check_rule(r#""name":"b","on_failure":"close""#, "rules[1].on_failure: use open, closed, {closed");
    check_limit(r#""policy":"p:q","key":["client_ip"]"#, ".policy: \"p:q\" is not a name");
    check_limit(
        r#""policy":"p","key":["ip"]"#,
        ".key[0]: use one of `client_ip`, `method`, `host`, or an object with one of `header`,",
    );
    check_limit(r#""policy":"p","key":"client_ip""#, ".key: must be a list, not a text");
    check_limit(
        r#""policy":"p","key":[{"header":"h","missing":"skp"}]"#,
        ".key[0].missing: use one of `shared`, `skip`, `deny` or {value: …}",
    );
    for cost in ["-1", "1.5", "9007199254740992", "\"1\""] {
        check_limit(&format!(r#""policy":"p","key":["client_ip"],"cost":{cost}"#), ".cost: ");
    }
    for status in ["200", "399", "600", "503.5", "-1", "1e9"] {
        let fields = format!(r#""name":"b","on_failure":{{"closed":{{"status":{status}}}}}"#);
        check_rule(&fields, "rules[1].on_failure.closed.status: a whole number from 400 to 599");
    }
}

#[test]
fn a_question_is_bounded() {
    let limit = r#"{"policy":"p","key":["client_ip"]}"#;
    check_rule(
        &format!(r#""name":"b","limits":[{}]"#, [limit; 17].join(",")),
        "rules[1].limits: a rule has at most 16",
    );
    let parts = [r#""client_ip""#; 9].join(",");
    check_limit(&format!(r#""policy":"p","key":[{parts}]"#), ".key: a key has 1 to 8 parts");
}

#[test]
fn paths_are_written_in_their_normal_form() {
    let check = |path: &str, normal: &str| {
        for kind in ["exact", "prefix"] {
            check_rule(
                &format!(r#""name":"b","match":{{"path":{{"{kind}":{path:?}}}}}"#),
                &format!(
                    "rules[1].match.path.{kind}: requests are compared in their normal form, without a query: write it as {normal:?}"
                ),
            );
        }
    };
    check("", "/");
    check("login", "/login");
    check("//login", "/login");
    check("/a/../b", "/b");
    check("/%6cogin", "/login");
    check("/login?x", "/login");
    check("/é", "/%C3%A9");
    check_rule(
        r#""name":"b","match":{"path":{}}"#,
        "rules[1].match.path: give one of exact, prefix, regex and template",
    );
    check_rule(r#""name":"b","match":{"path":{"exact":"/a","prefix":"/b"}}"#, "rules[1].match.path: give one of");
}

#[test]
fn headers_that_could_never_work_are_refused() {
    for name in [":path", "host", "x-sluicegate-reason", "a b", ""] {
        check_limit(&format!(r#""policy":"p","key":[{{"header":{name:?}}}]"#), ".key[0].header: ");
    }
    for name in ["content-length", "Host", "x-sluicegate", "x-envoy-max-retries", ":path", "a b", "traceparent"] {
        let expected = format!("service.headers.{name}: ");
        check_service(&format!(r#""cluster":"c","headers":{{{name:?}:"x"}}"#), &expected);
    }
    check_service(r#""cluster":"c","headers":{"token":"a\r\nb"}"#, "service.headers.token: a header value has no");
}

/// The first rule of a configuration with these fields at its top and in its rule.
fn rule_of(top: &str, fields: &str) -> Rc<Rule> {
    let limits = r#""limits":[{"policy":"p","key":["client_ip"]},{"policy":"q","key":["client_ip"],"shadow":true}]"#;
    let json = format!(r#"{{"service":{{"cluster":"c"}},{top}"rules":[{{"name":"a",{fields}{limits}}}]}}"#);
    Config::parse(json.as_bytes()).unwrap_or_else(|error| panic!("{error}: {json}")).rules.remove(0)
}

#[test]
fn a_local_bucket_has_its_numbers() {
    let local = |numbers: &str| rule_of("", &format!(r#""on_failure":{{"local":{{{numbers}}}}},"#)).on_failure;
    let expected = |slots| OnFailure::Local(LocalLimit::new(5, 10, 60_000, slots).unwrap());
    assert_eq!(local(r#""capacity":5,"refill":10.0,"per":"1m""#), expected(4096));
    assert_eq!(local(r#""capacity":5,"refill":10,"per":"60s","slots":64"#), expected(64));

    let check = |numbers: &str, expected: &str| {
        check_rule(
            &format!(r#""name":"b","on_failure":{{"local":{{{numbers}}}}}"#),
            &format!("rules[1].on_failure.local{expected}"),
        );
    };
    check("", ": missing field `capacity`");
    check(r#""capacity":0,"refill":1,"per":"1s""#, ".capacity: a whole number from 1 to");
    check(r#""capacity":1,"refill":1.5,"per":"1s""#, ".refill: a whole number from 1 to");
    check(r#""capacity":1,"refill":1,"per":"1""#, ".per: a duration is a whole number of ms");
    check(r#""capacity":1,"refill":1,"per":"1s","slots":31"#, ".slots: a whole number from 32 to 65536");
    check(r#""capacity":9007199254740992,"refill":1,"per":"1s""#, ": too large to be counted exactly");
    check_rule(
        r#""name":"b","on_failure":{"local":{"capacity":1,"refill":1,"per":"1s"}},"limits":[{"policy":"p","key":["client_ip"],"cost":2}]"#,
        "rules[1].on_failure.local.capacity: at least the cost of each limit",
    );
    for form in ["{}", r#"{"closed":{},"local":{"capacity":1,"refill":1,"per":"1s"}}"#] {
        check_rule(&format!(r#""name":"b","on_failure":{form}"#), "rules[1].on_failure: give one of closed and local");
    }
}

#[test]
fn shadow_is_for_a_limit_a_rule_or_all() {
    let shadows = |top, rule| rule_of(top, rule).limits.iter().map(|limit| limit.shadow).collect::<Vec<_>>();
    assert_eq!(shadows("", ""), [false, true]);
    assert_eq!(shadows("", r#""shadow":true,"#), [true, true]);
    assert_eq!(shadows(r#""shadow":true,"#, r#""shadow":false,"#), [true, true]);
}

#[test]
fn what_only_some_statuses_are_charged_for_is_listed() {
    let only = |fields| rule_of("", fields).only_status.as_ref().map(|statuses| statuses.to_vec());
    assert_eq!(only(""), None);
    assert_eq!(only(r#""charge":{"only_status":[401,403.0]},"#), Some(vec![401, 403]));
    let check = |charge: &str, expected: &str| {
        check_rule(&format!(r#""name":"b","charge":{charge}"#), &format!("rules[1].charge{expected}"));
    };
    check("{}", ": missing field `only_status`");
    check(r#"{"only_status":[]}"#, ".only_status: list the statuses");
    check(r#"{"only_status":[401,99]}"#, ".only_status[1]: a whole number from 200 to 599");
}

#[test]
fn a_rejection_looks_as_the_rule_or_the_whole_says() {
    let top =
        r#""reject":{"status":503,"body":"busy","headers":{"Content-Type":"text/html"}},"headers":["x_rate_limit"],"#;
    let reject = rule_of(top, "").style.reject.clone();
    assert_eq!((reject.status.code(), reject.body.as_deref()), (503, Some("busy")));
    assert_eq!(reject.headers[0].0.as_str(), "content-type");
    let style = rule_of(top, r#""reject":{},"#).style.clone();
    assert_eq!(style.reject, RejectStyle::default());
    assert_eq!(style.limits, LimitHeaders { rate_limit: false, x_rate_limit: true });

    let check = |reject: &str, expected: &str| {
        check_rule(&format!(r#""name":"b","reject":{reject}"#), &format!("rules[1].reject.{expected}"));
    };
    check(r#"{"status":200}"#, "status: a whole number from 400 to 599");
    check(r#"{"headers":{"a b":"x"}}"#, "headers.a b: ");
    check(r#"{"headers":{"x":"a\r\nb"}}"#, "headers.x: a header value has no control");
    for name in ["retry-after", "RateLimit", "x-ratelimit-reset", "x-sluicegate-reason", "content-length"] {
        check(&format!(r#"{{"headers":{{{name:?}:"x"}}}}"#), &format!("headers.{name}: the filter or the proxy sets"));
    }
    let error = error(r#"{"service":{"cluster":"c"},"rules":[],"headers":["rate-limit"]}"#);
    assert_eq!(error, "headers[0]: use one of `rate_limit`, `x_rate_limit`");
}

#[test]
fn breaker_deny_cache_and_metrics_have_defaults() {
    let config = |fields: &str| {
        Config::parse(format!(r#"{{"service":{{"cluster":"c"}},"rules":[]{fields}}}"#).as_bytes()).unwrap()
    };
    let (defaults, empty) = (config(""), config(r#","breaker":{},"deny_cache":{},"metrics":{}"#));
    assert_eq!((defaults.breaker, defaults.deny_cache, defaults.labels), Default::default());
    assert_eq!((empty.breaker, empty.deny_cache, empty.labels), Default::default());
    let second = Span::SECOND;
    assert_eq!(defaults.breaker, BreakerConfig { failures: 5, open_for: second });
    assert_eq!(defaults.deny_cache, DenyCacheConfig { max_entries: 1000, max_life: second });
    let set = config(
        r#","breaker":{"failures":0,"open_for":"5s"},"deny_cache":{"max_entries":7,"max_life":"1m"},"metrics":{"labels":"istio"}"#,
    );
    assert_eq!((set.breaker.failures, set.breaker.open_for.ms()), (0, 5_000));
    assert_eq!((set.deny_cache.max_entries, set.deny_cache.max_life.ms()), (7, 60_000));
    assert_eq!(set.labels, LabelForm::Istio);
    for (fields, expected) in [
        (r#""breaker":{"failures":-1}"#, "breaker.failures: a whole number from 0"),
        (r#""breaker":{"open_for":"0s"}"#, "breaker.open_for: a duration"),
        (r#""deny_cache":{"max_entries":1.5}"#, "deny_cache.max_entries: a whole number"),
        (r#""metrics":{"labels":"dots"}"#, "metrics.labels: use one of `envoy`, `istio`"),
    ] {
        let error = error(&format!(r#"{{"service":{{"cluster":"c"}},"rules":[],{fields}}}"#));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn a_protobuf_struct_is_read_like_json() {
    // {"nope": "xx…"} as google.protobuf.Struct: one entry, key 1, value 2. Some lengths are the beginning of JSON too.
    for length in 0..100_u8 {
        let text = vec![b'x'; length.into()];
        let head =
            [b"\x0a".as_slice(), &[10 + length], b"\x0a\x04nope\x12", &[2 + length], b"\x1a", &[length]].concat();
        let error = Config::parse(&[head, text].concat()).unwrap_err().to_string();
        assert!(error.starts_with("nope: unknown field `nope`"), "{length} bytes: {error}");
    }
}
