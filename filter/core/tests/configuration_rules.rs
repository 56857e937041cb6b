//! What is said about faults in rules, keys and choices. The same cases run natively and as wasm.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use sluicegate_filter_core::Config;

fn error(json: &str) -> String {
    Config::parse(json.as_bytes()).expect_err(json).to_string()
}

#[track_caller]
fn check_rules(rules: &str, expected: &str) {
    let error = error(&format!(r#"{{"service":{{"cluster":"c"}},"rules":[{rules}]}}"#));
    assert!(error.starts_with(expected), "{rules}: {error}");
}

#[track_caller]
fn check_match(matcher: &str, expected: &str) {
    check_rules(&format!(r#"{{"name":"a","match":{{{matcher}}},"limits":[]}}"#), &format!("rules[0].match.{expected}"));
}

#[track_caller]
fn check_limit(limit: &str, expected: &str) {
    check_rules(&format!(r#"{{"name":"a","limits":[{{{limit}}}]}}"#), &format!("rules[0].limits[0].{expected}"));
}

#[track_caller]
fn check_key(part: &str, expected: &str) {
    check_limit(&format!(r#""policy":"p","key":[{part}]"#), &format!("key[0]{expected}"));
}

#[test]
fn a_path_that_no_request_has_is_refused() {
    check_match(r#""path":{"regex":"("}"#, "path.regex: ");
    check_match(r#""path":{"regex":"a)|(b"}"#, "path.regex: ");
    check_match(r#""path":{"regex":".{1000}"}"#, "path.regex: ");
    check_match(
        &format!(r#""path":{{"regex":"{}"}}"#, "a".repeat(513)),
        "path.regex: a regular expression has at most 512",
    );
    check_match(r#""path":{"template":"/a/{b"}"#, "path.template: \"{b\" is no segment");
    check_match(r#""path":{"template":"/%61"}"#, "path.template: requests are compared in their normal form: write");
    check_match(
        r#""path":{"exact":"/a","trailing_slash":"lax"}"#,
        "path.trailing_slash: use one of `strict`, `ignore`",
    );
    check_match(r#""path":{"exact":"/a","ignore_case":"yes"}"#, "path.ignore_case: must be true or false, not a text");
    check_match(r#""path":{"ignore_case":true}"#, "path: give one of exact, prefix, regex and template");
    check_match(r#""path":"/a""#, "path: must be an object, not a text");
}

#[test]
fn conditions_that_could_never_hold_are_refused() {
    check_match(
        r#""hosts":["a.b","Example.com:80"]"#,
        "hosts[1]: a host such as example.com or *.example.com, without port: write it as example.com",
    );
    check_match(r#""hosts":"*""#, "hosts[0]: a host such as");
    check_match(
        r#""client":["10.0.0.1/8"]"#,
        "client[0]: the range of these addresses begins with 10.0.0.0: write it as 10.0.0.0/8",
    );
    check_match(r#""client":"localhost""#, "client[0]: an address or a range");
    for field in ["methods", "hosts", "client", "route"] {
        check_match(&format!(r#""{field}":[]"#), &format!("{field}: list at least one"));
        check_match(&format!(r#""{field}":[1]"#), &format!("{field}[0]: must be a text in quotes, not a number"));
    }
    check_match(r#""route":"""#, "route[0]: the name of a route");
    let header = |rest: &str, expected: &str| {
        check_match(&format!(r#""headers":[{{{rest}}}]"#), &format!("headers[0]{expected}"));
    };
    header(r#""name":"host","present":true"#, ".name: the proxy hands the host over");
    header(r#""name":":path","present":true"#, ".name: ");
    header(r#""name":"a""#, ": give one of present: true, absent: true, equals and regex");
    header(r#""name":"a","present":false"#, ": give one of present: true, absent: true");
    header(r#""name":"a","equals":"b","regex":"b""#, ": give one of");
    header(r#""name":"a","equals":" b""#, ".equals: no header has blanks around");
    header(r#""name":"a","regex":"[""#, ".regex: ");
    header(r#""present":true"#, ": missing field `name`");
}

#[test]
fn sources_that_could_never_be_are_refused() {
    check_key(r#"{"header":"a","cookie":"b"}"#, ": give one of `header`, `cookie`, `query`");
    check_key(r#"{"secret":true}"#, ": give one of `header`");
    check_key(
        r#"{"header":"host"}"#,
        ".header: the proxy hands the host over as a pseudo-header, so no request has this one: use host",
    );
    check_key(r#"{"cookie":"a=b"}"#, ".cookie: the name of a cookie");
    check_key(r#"{"cookie":""}"#, ".cookie: the name of a cookie");
    check_key(r#"{"path_segment":-1}"#, ".path_segment: a whole number from 0 to 255");
    check_key(r#"{"path_segment":"1"}"#, ".path_segment: must be a number, not a text");
    check_key(r#"{"path_variable":"id"}"#, ".path_variable: the rule matches no template with {id}");
    check_key(r#"{"client_ip":{"ipv6_prefix":0}}"#, ".client_ip.ipv6_prefix: a whole number from 1 to 128");
    check_key(
        r#"{"client_ip":{"prefix":64}}"#,
        ".client_ip.prefix: unknown field `prefix`, expected one of `ipv6_prefix`",
    );
    check_key(r#"{"jwt":{}}"#, ".jwt: missing field `claim`");
    check_key(r#"{"jwt":{"claim":[]}}"#, ".jwt.claim: list at least one");
    check_key(r#"{"jwt":{"claim":["a",""]}}"#, ".jwt: 1 to 16 names, none of them empty");
    check_key(r#"{"mtls":"cn"}"#, ".mtls: use one of `uri_san`, `dns_san`, `subject`, `sha256`");
    check_key(r#"{"route_metadata":["a"]}"#, ".route_metadata: list the namespace and the name");
    check_key(r#"{"property":"a..b"}"#, ".property: 1 to 16 names");
    check_key(r#"{"property":["a\u0000b"]}"#, ".property: 1 to 16 names");
    check_key(r#"{"property":[]}"#, ".property: 1 to 16 names");
    check_key(r#"{"header":"a","missing":{"default":"x"}}"#, ".missing.default: unknown field `default`");
    let rule = r#"{"name":"a","match":{"path":{"template":"/{x}/{y}"}},"limits":[{"policy":"p","key":[{"path_variable":"z"}]}]}"#;
    check_rules(rule, "rules[0].limits[0].key[0].path_variable: the rule's template has only x, y");
}

#[test]
fn choices_that_could_reach_the_service_wrong_are_refused() {
    let policy = |rest: &str, expected: &str| {
        check_limit(&format!(r#""key":["method"],"policy":{{{rest}}}"#), &format!("policy{expected}"));
    };
    policy(r#""from":"host","map":{}"#, ": missing field `default`");
    policy(r#""from":"host","default":"p","map":{"x":"a b"}"#, ".map.x: \"a b\" is not a name");
    policy(r#""from":"hst","default":"p","map":{}"#, ".from: use one of `client_ip`, `method`, `host`");
    policy(r#""from":{"header":"a","secret":true},"default":"p","map":{}"#, ".from.secret: unknown field `secret`");
    policy(r#""from":{"header":"host"},"default":"p","map":{}"#, ".from.header: the proxy hands");
    let cost = |rest: &str, expected: &str| {
        check_limit(&format!(r#""key":["method"],"policy":"p","cost":{{{rest}}}"#), &format!("cost{expected}"));
    };
    cost(r#""from":"host""#, ": give map, or max for values that are numbers");
    cost(r#""from":"host","min":1,"map":{}"#, ".min: give max as well");
    cost(r#""from":"host","min":9,"max":8"#, ".max: at least min, which is 9");
    cost(r#""from":"host","max":0"#, ".max: at least min, which is 1");
    cost(r#""from":"host","max":9007199254740992"#, ".max: a whole number from 0 to 9007199254740991");
    cost(r#""from":"host","map":{"a":-1}"#, ".map.a: a whole number");
    check_limit(r#""key":["method"],"policy":["p"]"#, "policy: must be a name or an object, not a list");
    check_limit(r#""key":["method"],"policy":"p","cost":"1""#, "cost: must be a number or an object, not a text");
}

#[test]
fn a_local_bucket_holds_the_dearest_cost() {
    let rule = |cost: &str| {
        format!(
            r#"{{"name":"a","limits":[{{"policy":"p","key":["method"],"cost":{cost}}}],"on_failure":{{"local":{{"capacity":5,"refill":1,"per":"1s"}}}}}}"#
        )
    };
    for cost in [
        "6",
        r#"{"from":"host","max":6}"#,
        r#"{"from":"host","map":{"a":6}}"#,
        r#"{"from":"host","map":{},"default":6}"#,
    ] {
        check_rules(&rule(cost), "rules[0].on_failure.local.capacity: at least the cost of each limit");
    }
    let json = format!(r#"{{"service":{{"cluster":"c"}},"rules":[{}]}}"#, rule(r#"{"from":"host","max":5}"#));
    Config::parse(json.as_bytes()).unwrap();
}

#[test]
fn joined_rules_make_no_question_that_the_service_refuses() {
    let rule = |name: usize, limits: usize, parts: usize, go_on: bool| {
        let limit = format!(r#"{{"policy":"p","key":[{}]}}"#, vec!["\"method\""; parts].join(","));
        format!(r#"{{"name":"r{name}","limits":[{}],"continue":{go_on}}}"#, vec![limit; limits].join(","))
    };
    let config = |rules: Vec<String>| format!(r#"{{"service":{{"cluster":"c"}},"rules":[{}]}}"#, rules.join(","));
    let joined = |last: usize| (0..4).map(|name| rule(name, 15, 1, true)).chain([rule(4, last, 1, false)]).collect();
    Config::parse(config(joined(4)).as_bytes()).unwrap();
    assert_eq!(
        error(&config(joined(5))),
        "rules[4].limits: with the rules before it that say continue or have a regex, a request can have 65 limits: at most 64"
    );
    // Rules that don't continue are never together.
    Config::parse(config((0..9).map(|name| rule(name, 16, 8, false)).collect()).as_bytes()).unwrap();
    let wide = vec![rule(0, 9, 8, true), rule(1, 8, 7, false), rule(2, 8, 8, false)];
    assert_eq!(
        error(&config(wide)),
        "rules[2].limits: with the rules before it that say continue or have a regex, a request can have 136 parts of keys: at most 128"
    );
    check_rules(r#"{"name":"a","limits":[],"continue":true}"#, "rules[0].continue: a rule without limits exempts");
}

#[test]
fn a_name_that_stands_twice_is_refused() {
    let error = error(r#"{"service":{"cluster":"c"},"rules":[],"rules":[{"name":"a","limits":[]}]}"#);
    assert!(error.contains("duplicate field `rules`"), "{error}");
}

#[test]
fn a_lease_is_for_a_limit_that_can_be_leased() {
    let limit = |lease: &str, more: &str| format!(r#""policy":"p","key":["client_ip"],"lease":{lease}{more}"#);
    for (lease, expected) in [
        (r#"{"tokens":50}"#, "lease: missing field `for`"),
        (r#"{"for":"2s"}"#, "lease: missing field `tokens`"),
        (r#"{"tokens":0,"for":"2s"}"#, "lease.tokens: a whole number from 1 to 100000"),
        (r#"{"tokens":100001,"for":"2s"}"#, "lease.tokens: a whole number from 1 to 100000"),
        (r#"{"tokens":50,"for":"0s"}"#, "lease.for: a duration is"),
        (r#"{"tokens":50,"for":"499ms"}"#, "lease.for: a lease lasts from 500ms to 60s"),
        (r#"{"tokens":50,"for":"61s"}"#, "lease.for: a lease lasts from 500ms to 60s"),
        (r#"{"tokens":50,"for":"2s","fro":1}"#, "lease.fro: unknown field `fro`"),
        ("50", "lease: must be an object"),
    ] {
        check_limit(&limit(lease, ""), expected);
    }
    let lease = r#"{"tokens":50,"for":"2s"}"#;
    check_limit(&limit(lease, r#","cost":51"#), "lease.tokens: at least the most that a request costs, which is 51");
    let chosen = r#","cost":{"from":{"query":"n"},"max":60}"#;
    check_limit(&limit(lease, chosen), "lease.tokens: at least the most that a request costs, which is 60");
    check_rules(
        &format!(r#"{{"name":"a","limits":[{{{}}}],"charge":{{"only_status":[401]}}}}"#, limit(lease, "")),
        "rules[0].limits[0].lease: what is leased is not given back by a response's status: take lease or the rule's",
    );
    // In shadow it is only not used.
    let config = format!(
        r#"{{"service":{{"cluster":"c"}},"shadow":true,"rules":[{{"name":"a","limits":[{{{}}}]}}]}}"#,
        limit(lease, "")
    );
    let config = Config::parse(config.as_bytes()).unwrap();
    assert!(config.leases());
    let lease = config.rules[0].limits[0].lease.unwrap();
    assert_eq!((lease.tokens.get(), lease.for_ms.get()), (50, 2_000));
}
