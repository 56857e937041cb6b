//! What holds for every request under every kind of rule: nothing traps, nothing the service would refuse is asked, and
//! neither a spelling nor a second line is a way around a limit.
#![cfg(not(target_arch = "wasm32"))]

mod common;

use std::net::{IpAddr, Ipv6Addr};

use common::{EVERYTHING, TestRequest, with_rules};
use proptest::{collection::vec, prelude::*, sample::Index};
use sluicegate_filter_core::{Callout, Config, Decision, decide};
use sluicegate_wire::{Check, CheckRequest};

const HEADERS: [&str; 14] = [
    ":authority",
    ":method",
    ":path",
    "authorization",
    "content-type",
    "cookie",
    "host",
    "x-a",
    "x-b",
    "x-c",
    "x-d",
    "x-key",
    "x-plan",
    "x-skip",
];
const PROPERTIES: [&str; 8] = [
    "source.address",
    "xds.route_name",
    "xds.route_metadata.filter_metadata.sluicegate.tenant",
    "metadata.filter_metadata.envoy.filters.http.jwt_authn.payload.a.b",
    "connection.uri_san_peer_certificate",
    "x.y",
    "source.port",
    "nothing",
];

/// Values made of what the code looks at, or of anything.
fn value() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "1",
        "gold",
        "export",
        "sid=",
        "sid=\"%61\"",
        "; ",
        "&",
        "=",
        "Bearer ",
        "%",
        "%2f",
        "/",
        "..",
        "/users/",
        "/api",
        "/deny",
        "?key=",
        "cost=",
        "#",
        ":80",
        "[::1]",
        "10.1.2.3:4",
        "[2001:db8::1%lo]:5",
        "x",
        "y",
        "\u{e9}",
        "application/grpc",
        ".example.com",
        "@",
    ];
    let word = prop::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec());
    prop_oneof![
        4 => vec(word, 0..8).prop_map(|words| words.concat()),
        1 => vec(any::<u8>(), 0..40),
        1 => (any::<u8>(), 0_usize..70_000).prop_map(|(byte, count)| vec![byte; count]),
    ]
}

fn request() -> impl Strategy<Value = TestRequest> {
    let headers = vec((prop::sample::select(HEADERS.to_vec()), value()), 0..12);
    let properties = vec((prop::sample::select(PROPERTIES.to_vec()), value()), 0..8);
    (value(), headers, properties).prop_map(|(path, headers, properties)| {
        let request = TestRequest::new("GET", path);
        let request = headers.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        properties.into_iter().fold(request, |request, (path, value)| request.property(path, value))
    })
}

fn checks(config: &Config, request: &TestRequest) -> Option<Vec<Check>> {
    match decide(config, request) {
        Decision::Pass { .. } => Some(Vec::new()),
        Decision::Deny { .. } => None,
        Decision::Ask(asked) => Some(asked.question.checks),
    }
}

/// The same path spelled otherwise, by these choices.
fn respelled(path: &str, choices: &[u8]) -> String {
    let mut choices = choices.iter().copied().cycle();
    let mut spelled = String::new();
    for character in path.chars() {
        match (character, choices.next().unwrap_or_default() % 5) {
            ('/', 1) => spelled.push_str("//"),
            ('/', 2) => spelled.push_str("/./"),
            ('/', 3) => spelled.push_str("/x/../"),
            ('/', 4) => spelled.push('\\'),
            (letter, 1) if letter.is_ascii_alphanumeric() => spelled.push_str(&format!("%{:02x}", u32::from(letter))),
            (letter, 2) if letter.is_ascii_alphanumeric() => spelled.push_str(&format!("%{:02X}", u32::from(letter))),
            (other, _) => spelled.push(other),
        }
    }
    spelled
}

/// Segments of a template, the paths' alphabet kept small so that they often meet.
fn segments() -> impl Strategy<Value = Vec<&'static str>> {
    vec(prop::sample::select(vec!["a", "b", "{x}", "*", "**", ""]), 1..5)
}

proptest! {
    #[test]
    fn every_request_makes_a_question_that_the_service_takes(request in request()) {
        let config = with_rules(EVERYTHING);
        if let Decision::Ask(asked) = decide(&config, &request) {
            let callout = Callout::build(&config.service, asked, &request);
            prop_assert!(callout.body.len() <= 256 * 1024, "{} bytes", callout.body.len());
            let question: CheckRequest = serde_json::from_slice(&callout.body).unwrap();
            prop_assert_eq!(&question, &callout.asked.question);
            prop_assert!((1..=64).contains(&question.checks.len()));
            for check in question.checks {
                prop_assert!(["p", "gold", "free"].contains(&check.policy.as_str()));
                prop_assert!((1..=100).contains(&check.cost.tokens()));
            }
        }
    }

    #[test]
    fn every_configuration_is_accepted_or_refused(at in vec((any::<Index>(), any::<u8>()), 1..4), request in request()) {
        let whole = format!(r#"{{"service":{{"cluster":"c"}},"rules":[{EVERYTHING}]}}"#);
        let mut bytes = whole.into_bytes();
        for (at, byte) in at {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(config) = Config::parse(&bytes) {
            let _ = decide(&config, &request);
        }
    }

    #[test]
    fn a_spelling_changes_neither_the_rules_nor_the_keys(path in "(/(users|api|v1|[a-z0-9]{1,3})){1,4}/?", by in vec(any::<u8>(), 1..20)) {
        let config = with_rules(EVERYTHING);
        let plain = checks(&config, &TestRequest::new("GET", &path));
        let other = respelled(&path, &by);
        prop_assert_eq!(checks(&config, &TestRequest::new("GET", &other)), plain, "{}", other);
    }

    #[test]
    fn a_second_line_never_takes_a_limit_away(request in request(), name in prop::sample::select(vec!["x-a", "x-c", "x-d", "x-key", "x-plan", "authorization", "cookie"]), value in value()) {
        let config = with_rules(EVERYTHING);
        let before = checks(&config, &request);
        let sent = request.header(name, value);
        if let (Some(before), Some(after)) = (before, checks(&config, &sent)) {
            prop_assert!(after.len() >= before.len(), "{:?} became {:?}", before, after);
        }
    }

    #[test]
    fn a_template_is_the_regular_expression_of_its_segments(template in segments(), path in vec(prop::sample::select(vec!["a", "b", "c", ""]), 1..5)) {
        let template = format!("/{}", template.join("/"));
        let regex = template.replace("/**", "(/.*)?").replace("{x}", "[^/]+").replace("/*", "/[^/]+");
        let rule = |form: &str, text: &str| {
            format!(r#"{{"name":"r","match":{{"path":{{"{form}":"{text}"}}}},"limits":[{{"policy":"p","key":["method"]}}]}}"#)
        };
        let json = |rule: String| format!(r#"{{"service":{{"cluster":"c"}},"rules":[{rule}]}}"#);
        if let Ok(by_template) = Config::parse(json(rule("template", &template)).as_bytes()) {
            let by_regex = with_rules(&rule("regex", &regex));
            let request = TestRequest::new("GET", format!("/{}", path.join("/")));
            prop_assert_eq!(checks(&by_template, &request), checks(&by_regex, &request), "{} {}", template, regex);
        }
    }

    #[test]
    fn a_range_holds_the_addresses_with_its_first_bits(bits: u128, flips: u128, prefix in 0_u8..=128, keep in 0_u8..=128) {
        let mask = |prefix: u8| u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
        let network = bits & mask(prefix);
        let address = bits ^ (flips & !mask(keep));
        // Neither is IPv4 in disguise.
        prop_assume!(network >> 32 != 0xffff && address >> 32 != 0xffff);
        let rule = format!(
            r#"{{"name":"r","match":{{"client":"{}/{prefix}"}},"limits":[{{"policy":"p","key":["method"]}}]}}"#,
            Ipv6Addr::from_bits(network)
        );
        let source = format!("[{}]:1", IpAddr::V6(Ipv6Addr::from_bits(address)));
        let request = TestRequest::new("GET", "/").source(Some(source.as_bytes()));
        let inside = (0..prefix).all(|bit| (network ^ address) >> (127 - bit) & 1 == 0);
        prop_assert_eq!(!checks(&with_rules(&rule), &request).unwrap().is_empty(), inside);
    }

    #[test]
    fn a_host_is_the_same_with_a_port_a_dot_and_in_capitals(host in "[a-z0-9-]{1,9}(\\.[a-z]{1,5}){0,2}", port: Option<u16>, dot: bool, upper: bool) {
        let config = with_rules(r#"{"name":"r","limits":[{"policy":"p","key":["host"]}]}"#);
        let to = |authority: &str| checks(&config, &TestRequest::new("GET", "/").header(":authority", authority));
        let name = if upper { host.to_uppercase() } else { host.clone() };
        let other = format!("{name}{}{}", if dot { "." } else { "" }, port.map_or(String::new(), |port| format!(":{port}")));
        prop_assert_eq!(to(&other), to(&host), "{}", other);
    }
}

/// 128 parts of 256 bytes that JSON writes with six characters each.
#[test]
fn the_largest_question_is_one_that_the_service_takes() {
    let part = r#"{"query":"k"}"#;
    let limit = format!(r#"{{"policy":"{}","key":[{}]}}"#, "p".repeat(64), [part; 8].join(","));
    let rule =
        |name: &str| format!(r#"{{"name":"{name}","limits":[{}],"continue":true}}"#, vec![limit.clone(); 8].join(","));
    let config = with_rules(&[rule("a"), rule("b")].join(","));
    let request = TestRequest::new("GET", format!("/?k={}", "%01".repeat(256)));
    let Decision::Ask(asked) = decide(&config, &request) else { panic!("not asked") };
    let callout = Callout::build(&config.service, asked, &request);
    assert!((190_000..256 * 1024).contains(&callout.body.len()), "{} bytes", callout.body.len());
}
