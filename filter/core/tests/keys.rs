//! What a request is counted as, and what it costs. The same cases run natively and as wasm.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use common::{TestRequest, asked_by, with_rules};
use sluicegate_filter_core::{Decision, Metric, decide};
use sluicegate_wire::{Check, Part, Pepper};

fn rule(path: &str, limit: &str) -> String {
    format!(r#"{{"name":"r","match":{{"path":{{{path}}}}},"limits":[{{{limit}}}]}}"#)
}

/// The one check that a request is asked about; none when the limit is skipped.
fn check_of(path: &str, limit: &str, request: &TestRequest) -> Option<Check> {
    asked_by(&rule(path, limit), request).map(|mut asked| asked.question.checks.remove(0))
}

fn parts(path: &str, key: &str, request: &TestRequest) -> Option<Vec<Part>> {
    let check = check_of(path, &format!(r#""policy":"p","key":[{key}]"#), request)?;
    Some(check.key.parts().to_vec())
}

/// What a key of one part makes of a request.
#[track_caller]
fn check(key: &str, request: &TestRequest, expected: &Part) {
    assert_eq!(parts(r#""prefix":"/""#, key, request).as_deref(), Some(std::slice::from_ref(expected)), "{key}");
}

fn get(path: &str) -> TestRequest {
    TestRequest::new("GET", path)
}

#[test]
fn an_address_is_of_a_network_of_the_size_given() {
    let from = |address: &str| get("/").source(Some(address.as_bytes()));
    let narrow = r#"{"client_ip":{"ipv6_prefix":48}}"#;
    check("\"client_ip\"", &from("[2001:db8:1:2::3]:443"), &Part::text("2001:db8:1:2::/64"));
    check(narrow, &from("[2001:db8:1:2::3]:443"), &Part::text("2001:db8:1::/48"));
    check(narrow, &from("[::ffff:203.0.113.7]:443"), &Part::text("203.0.113.7"));
    check(r#"{"client_ip":{}}"#, &from("203.0.113.7:1"), &Part::text("203.0.113.7"));
}

#[test]
fn words_and_constants_are_parts() {
    check("\"method\"", &TestRequest::new("PURGE", "/"), &Part::text("PURGE"));
    check("\"host\"", &get("/").header(":authority", "Example.com.:80"), &Part::text("example.com"));
    check("\"host\"", &get("/").header(":authority", "[::1]:80"), &Part::text("[::1]"));
    check("\"host\"", &get("/"), &Part::text(""));
    check(r#"{"constant":"all"}"#, &get("/"), &Part::text("all"));
}

#[test]
fn cookies_and_parameters_are_parts_in_one_spelling() {
    let cookie = r#"{"cookie":"sid"}"#;
    check(cookie, &get("/").header("cookie", "a=b; sid=x%79z"), &Part::text("xyz"));
    check(cookie, &get("/").header("cookie", "sid=1").header("cookie", "a=2"), &Part::text("1"));
    check(cookie, &get("/").header("cookie", "sid=1; sid=2"), &Part::MISSING);
    check(cookie, &get("/").header("cookie", "sid=1").header("cookie", "sid=1"), &Part::MISSING);
    check(cookie, &get("/").header("cookie", "sid="), &Part::text(""));
    let query = r#"{"query":"key"}"#;
    check(query, &get("/?key=a+b%FF"), &Part::bytes(b"a b\xff".to_vec()));
    check(query, &get("/?key=a&k%65y=b"), &Part::MISSING);
    check(query, &get("/?kex=a#?key=b"), &Part::MISSING);
}

#[test]
fn a_credential_is_no_other_by_the_case_of_its_scheme() {
    let key = r#"{"header":"authorization"}"#;
    for value in ["Bearer aB", "bearer  aB", "BEARER aB "] {
        check(key, &get("/").header("Authorization", value), &Part::text("bearer aB"));
    }
    check(key, &get("/").header("authorization", "aB"), &Part::text("aB"));
    check(r#"{"header":"x-token"}"#, &get("/").header("x-token", "Bearer  aB"), &Part::text("Bearer  aB"));
}

#[test]
fn segments_and_variables_of_the_path_are_parts() {
    let check = |path_match: &str, key: &str, path: &str, expected: Part| {
        assert_eq!(parts(path_match, key, &get(path)), Some(vec![expected]), "{path_match} {key} {path}");
    };
    let any = r#""prefix":"/""#;
    check(any, r#"{"path_segment":1}"#, "/users//a%2fb%20/../Bob/x?y", Part::text("Bob"));
    check(any, r#"{"path_segment":0}"#, "/%2525", Part::text("%25"));
    check(any, r#"{"path_segment":1}"#, "/users/", Part::MISSING);
    check(any, r#"{"path_segment":9}"#, "/", Part::MISSING);
    let template = r#""template":"/u/{who}/{what}""#;
    check(template, r#"{"path_variable":"what"}"#, "/u/bob/a%2Fb", Part::text("a/b"));
    let lax = r#""template":"/U/{who}","ignore_case":true,"trailing_slash":"ignore""#;
    check(lax, r#"{"path_variable":"who"}"#, "/u/BOB/", Part::text("bob"));
}

#[test]
fn claims_identities_and_properties_are_parts() {
    let claims = "metadata.filter_metadata.envoy.filters.http.jwt_authn";
    let sub = r#"{"jwt":{"claim":"sub"}}"#;
    check(sub, &get("/").property(&format!("{claims}.payload.sub"), "alice"), &Part::text("alice"));
    check(sub, &get("/").property(&format!("{claims}.payload.sub"), 42_f64.to_le_bytes()), &Part::text("42"));
    check(sub, &get("/"), &Part::MISSING);
    let nested = r#"{"jwt":{"claim":["realm","tenant"],"provider":"corp"}}"#;
    check(nested, &get("/").property(&format!("{claims}.corp.realm.tenant"), "t"), &Part::text("t"));
    for (name, property) in [
        ("uri_san", "uri_san_peer_certificate"),
        ("dns_san", "dns_san_peer_certificate"),
        ("subject", "subject_peer_certificate"),
        ("sha256", "sha256_peer_certificate_digest"),
    ] {
        let request = get("/").property(&format!("connection.{property}"), "spiffe://td/sa/b");
        check(&format!(r#"{{"mtls":"{name}"}}"#), &request, &Part::text("spiffe://td/sa/b"));
    }
    let route = get("/").property("xds.route_metadata.filter_metadata.my.ns.tenant", "t1");
    check(r#"{"route_metadata":["my.ns","tenant"]}"#, &route, &Part::text("t1"));
    let named = get("/").property("connection.requested_server_name", "a.example");
    check(r#"{"property":"connection.requested_server_name"}"#, &named, &Part::text("a.example"));
    let port = get("/").property("source.port", 443_i64.to_le_bytes());
    check(r#"{"property":["source","port"]}"#, &port, &Part::text("443"));
}

#[test]
fn a_secret_of_any_source_leaves_as_a_digest() {
    let request = get("/?key=abc").header("cookie", "sid=abc");
    for key in [r#"{"query":"key","secret":true}"#, r#"{"cookie":"sid","secret":true}"#] {
        check(key, &request, &Part::secret(b"abc", None));
    }
    // What was not sent but is counted as if it had been.
    check(r#"{"query":"no","secret":true,"missing":{"value":"abc"}}"#, &request, &Part::secret(b"abc", None));
    check(r#"{"query":"no","secret":true}"#, &request, &Part::MISSING);
    let config = with_rules(&rule(r#""prefix":"/""#, r#""policy":"p","key":[{"query":"key","secret":true}]"#));
    let config = sluicegate_filter_core::Config { key_pepper: Some(Pepper::new(b"salt").unwrap()), ..config };
    let Decision::Ask(asked) = decide(&config, &request) else { panic!("not asked") };
    let pepper = Pepper::new(b"salt").unwrap();
    assert_eq!(asked.question.checks[0].key.parts(), [Part::secret(b"abc", Some(&pepper))]);
}

const ABSENT: &[&str] = &[];

fn with_keys(values: &[&str]) -> TestRequest {
    values.iter().fold(get("/"), |request, value| request.header("x-key", value))
}

#[test]
fn a_missing_value_is_shared_or_another_by_choice() {
    let key = |missing: &str| format!(r#"{{"header":"x-key"{missing}}}"#);
    for values in [ABSENT, &["a", "b"]] {
        check(&key(""), &with_keys(values), &Part::MISSING);
        check(&key(r#","missing":"shared""#), &with_keys(values), &Part::MISSING);
        check(&key(r#","missing":{"value":"anonymous"}"#), &with_keys(values), &Part::text("anonymous"));
    }
    for missing in ["", r#","missing":"skip""#, r#","missing":"deny""#, r#","missing":{"value":"v"}"#] {
        check(&key(missing), &with_keys(&["a"]), &Part::text("a"));
        check(&key(missing), &with_keys(&[""]), &Part::text(""));
    }
}

#[test]
fn leaving_a_value_out_skips_by_choice_but_doubling_it_never_does() {
    let skip = r#"{"header":"x-key","missing":"skip"}"#;
    check(skip, &with_keys(&["a", "a"]), &Part::MISSING);
    let config = with_rules(&rule(r#""prefix":"/""#, &format!(r#""policy":"p","key":[{skip}]"#)));
    let Decision::Pass { measures } = decide(&config, &with_keys(ABSENT)) else { panic!("asked") };
    assert_eq!(measures, [Metric::Skipped { rule: "r".parse().unwrap() }.once()]);
    // The other limits of the rule still count.
    let two = format!(
        r#"{{"name":"r","limits":[{{"policy":"p","key":["method",{skip}]}},{{"policy":"q","key":["client_ip"]}}]}}"#
    );
    let asked = asked_by(&two, &with_keys(ABSENT)).unwrap();
    assert_eq!(asked.question.checks.iter().map(|check| check.policy.as_str()).collect::<Vec<_>>(), ["q"]);
    assert_eq!(asked.measures.len(), 1);
}

#[test]
fn a_request_without_a_demanded_value_is_denied() {
    let limit =
        |shadow: bool| format!(r#""policy":"p","key":[{{"header":"x-key","missing":"deny"}}],"shadow":{shadow}"#);
    let config = with_rules(&rule(r#""prefix":"/""#, &limit(false)));
    for values in [ABSENT, &["a", "a"]] {
        let Decision::Deny { rule, grpc: false } = decide(&config, &with_keys(values)) else { panic!("not denied") };
        assert_eq!(rule.name.as_str(), "r");
    }
    // A skipped part doesn't save it.
    let both = r#""policy":"p","key":[{"query":"q","missing":"skip"},{"header":"x-key","missing":"deny"}]"#;
    assert!(matches!(decide(&with_rules(&rule(r#""prefix":"/""#, both)), &get("/")), Decision::Deny { .. }));
    // In shadow it is only counted.
    let config = with_rules(&rule(r#""prefix":"/""#, &limit(true)));
    let Decision::Pass { measures } = decide(&config, &get("/")) else { panic!("not passed") };
    assert!(matches!(measures[0].metric, Metric::Shadow { .. }), "{measures:?}");
}

/// The policy and cost of a request, and whether something of it fell back to a default.
fn chosen(limit: &str, request: &TestRequest) -> (String, u64, bool) {
    let limit = format!(r#""key":["client_ip"],{limit}"#);
    let mut asked = asked_by(&rule(r#""prefix":"/""#, &limit), request).unwrap();
    let check = asked.question.checks.remove(0);
    let fell_back = asked.measures.iter().any(|measure| matches!(measure.metric, Metric::Fallbacks { .. }));
    (check.policy, check.cost.tokens(), fell_back)
}

#[test]
fn a_policy_is_chosen_among_those_of_the_map() {
    let policy = r#""policy":{"from":{"header":"x-key"},"map":{"gold":"api-gold","":"empty"},"default":"api"}"#;
    let check = |values: &[&str], policy_expected: &str, fell_back: bool| {
        assert_eq!(chosen(policy, &with_keys(values)), (policy_expected.to_owned(), 1, fell_back), "{values:?}");
    };
    check(&["gold"], "api-gold", false);
    check(&[""], "empty", false);
    check(&[], "api", false);
    check(&["Gold"], "api", true);
    check(&["../../x"], "api", true);
    check(&["gold", "gold"], "api", true);
    let claim = r#""policy":{"from":{"jwt":{"claim":"tier"}},"map":{"2":"two","true":"yes"},"default":"api"}"#;
    let with =
        |value: &[u8]| get("/").property("metadata.filter_metadata.envoy.filters.http.jwt_authn.payload.tier", value);
    assert_eq!(chosen(claim, &with(&2_f64.to_le_bytes())).0, "two");
    assert_eq!(chosen(claim, &with(&[1])).0, "yes");
}

#[test]
fn a_cost_is_chosen_within_its_bounds() {
    let from = |rest: &str| format!(r#""policy":"p","cost":{{"from":{{"header":"x-key"}},{rest}}}"#);
    let check = |rest: &str, values: &[&str], cost: u64, fell_back: bool| {
        assert_eq!(chosen(&from(rest), &with_keys(values)), ("p".to_owned(), cost, fell_back), "{rest} {values:?}");
    };
    let number = r#""max":100,"default":2"#;
    check(number, &["7"], 7, false);
    check(number, &["100"], 100, false);
    check(number, &[], 2, false);
    check(number, &["7", "7"], 2, true);
    check(number, &["101"], 100, true);
    check(number, &["99999999999999999999999999"], 100, true);
    check(number, &["0"], 1, true);
    for bad in ["", "-1", "+1", "1.5", "1e3", "0x10", "NaN", " ", "١"] {
        check(number, &[bad], 2, true);
    }
    check(r#""max":9,"min":0"#, &["0"], 0, false);
    check(r#""max":9,"min":3"#, &["1"], 3, true);
    let map = r#""map":{"export":50,"7":8}"#;
    check(map, &["export"], 50, false);
    check(map, &["3"], 1, true);
    check(r#""map":{"export":50,"7":8},"max":9"#, &["7"], 8, false);
    check(r#""map":{"export":50,"7":8},"max":9"#, &["6"], 6, false);
    let metadata = r#""policy":"p","cost":{"from":{"route_metadata":["sluicegate","cost"]},"max":10}"#;
    let with = |cost: f64| get("/").property("xds.route_metadata.filter_metadata.sluicegate.cost", cost.to_le_bytes());
    assert_eq!(chosen(metadata, &with(5.0)), ("p".to_owned(), 5, false));
    for (bad, cost) in [(0.5, 1), (f64::NAN, 1), (-3.0, 1), (1e300, 1), (1e12, 10)] {
        assert_eq!(chosen(metadata, &with(bad)), ("p".to_owned(), cost, true), "{bad}");
    }
}
