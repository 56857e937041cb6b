//! What holds for every input: nothing traps, and no spelling is a way around a limit.
#![cfg(not(target_arch = "wasm32"))]

mod common;

use common::{TestRequest, answered, asked, judge, question};
use proptest::{collection::vec, prelude::*};
use sluicegate_filter_core::{Answer, Config, HeaderValue, NormalPath, Outcome, Verdict, pairs};

fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..length)
}

/// Paths made of what normalisation looks at.
fn path() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("/"),
        Just("."),
        Just(".."),
        Just("%"),
        Just("%2e"),
        Just("%2F"),
        Just("%6c"),
        Just("%25"),
        Just("a"),
        Just("login"),
        Just("?"),
        Just("é"),
        Just("%zz"),
    ];
    vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn a_normal_path_is_its_own_normal_form(path in prop_oneof![path().prop_map(String::into_bytes), bytes(40)]) {
        let normal = NormalPath::of(&path);
        prop_assert_eq!(&NormalPath::of(normal.as_str().as_bytes()), &normal);
        prop_assert!(normal.as_str().starts_with('/') && normal.as_str().bytes().all(|byte| byte.is_ascii_graphic()));
        let segments: Vec<_> = normal.as_str().split('/').skip(1).collect();
        prop_assert!(!segments.iter().any(|segment| [".", ".."].contains(segment)), "{:?}", normal);
        prop_assert!(!segments.iter().rev().skip(1).any(|segment| segment.is_empty()), "{:?}", normal);
    }

    #[test]
    fn encoding_a_letter_never_changes_the_path(prefix in path(), at in 0_usize..5, upper: bool) {
        let letter = "login".as_bytes()[at];
        let hex = if upper { format!("%{letter:02X}") } else { format!("%{letter:02x}") };
        let encoded = format!("/{}{hex}{}", &"login"[..at], &"login"[at + 1..]);
        let prefix = prefix.replace('?', "");
        let plain = NormalPath::of(format!("{prefix}/login").as_bytes());
        prop_assert_eq!(NormalPath::of(format!("{prefix}{encoded}").as_bytes()), plain);
    }

    #[test]
    fn every_header_byte_makes_a_question(value in bytes(400), path in bytes(40), source in bytes(40)) {
        let full_path = [b"/api/".as_slice(), &path].concat();
        for request in [
            TestRequest::new("POST", "/login").header("x-account", &value).source(Some(&source)),
            TestRequest::new("GET", full_path).header("x-api-key", &value).header("x-request-id", &value),
        ] {
            if let Some(callout) = question(&request) {
                let body: serde_json::Value = serde_json::from_slice(&callout.body).unwrap();
                prop_assert!(body["checks"][0]["key"].is_string() || body["checks"][0]["key"].is_array());
                for (_, value) in &callout.headers {
                    prop_assert!(!value.as_str().chars().any(char::is_control));
                }
            }
        }
    }

    #[test]
    fn different_secrets_make_different_questions(left in "[!-~]{1,40}", right in "[!-~]{1,40}") {
        let body = |key: &str| question(&TestRequest::new("GET", "/api/").header("x-api-key", key)).unwrap().body;
        prop_assert_eq!(left == right, body(&left) == body(&right));
        prop_assert!(left.len() < 5 || !String::from_utf8(body(&left)).unwrap().contains(&left));
    }

    #[test]
    fn every_answer_ends_in_a_verdict(status: Option<u16>, marked: bool, body in bytes(300)) {
        let outcome = Outcome::Answered(Answer { status, marked, body: &body });
        // Random bytes are no answer, so the rules' failure verdicts hold.
        let rejects = |asked| matches!(judge(&asked, outcome).verdict, Verdict::Reject(_));
        prop_assert!(!rejects(asked("GET", "/api/")));
        prop_assert!(rejects(asked("POST", "/login")));
    }

    #[test]
    fn no_limit_name_breaks_a_header(name in any::<String>(), allowed: bool) {
        let reason = if allowed { "ok" } else { "over_limit" };
        let body = serde_json::json!({ "allowed": allowed, "results": [{
            "check": 0, "policy": name, "limit": name, "allowed": allowed, "reason": reason, "capacity": 1,
            "window_ms": 1, "remaining": 0, "retry_after_ms": 1, "next_ms": 1, "full_ms": 1,
        }] });
        let judgement = answered(&asked("POST", "/login"), if allowed { 200 } else { 429 }, body.to_string());
        prop_assert!(judgement.failure.is_none());
        let headers = match judgement.verdict {
            Verdict::Pass { response_headers, .. } => response_headers,
            Verdict::Reject(rejection) => rejection.headers,
        };
        prop_assert!(headers.iter().all(|(_, value)| value.as_str().bytes().all(|byte| (b' '..=b'~').contains(&byte))));
    }

    #[test]
    fn header_values_hold_no_control_character(text in any::<String>()) {
        prop_assert!(!HeaderValue::new(&text).as_str().chars().any(char::is_control));
    }

    #[test]
    fn every_configuration_is_accepted_or_refused(bytes in bytes(200), at in any::<prop::sample::Index>(), byte: u8) {
        let _ = Config::parse(&bytes);
        let mut mutated = common::CONFIG.as_bytes().to_vec();
        let at = at.index(mutated.len());
        mutated[at] = byte;
        let _ = Config::parse(&mutated);
    }

    #[test]
    fn pairs_survive_the_abi(lines in vec(("[!-~]{0,9}", any::<String>()), 0..6), junk in bytes(60)) {
        let encoded = pairs::encode(lines.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let decoded = pairs::decode(&encoded).unwrap();
        let expected: Vec<_> = lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())).collect();
        prop_assert_eq!(decoded.lines().collect::<Vec<_>>(), expected);
        let _ = pairs::decode(&junk);
    }
}
