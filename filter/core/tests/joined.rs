//! Rules that were joined by `continue`: which of them has its way. The same cases run natively and as wasm.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use common::{Shared, TestRequest, answered, asked_by, judge, with_rules};
use sluicegate_filter_core::{
    Asked, Judgement, Metric, Outcome, Step, Surroundings, Verdict, VerdictLabel, Worker, config::Service,
};

/// A rule that goes on, with limits named like it.
fn rule(name: &str, rest: &str) -> String {
    format!(r#"{{"name":"{name}","limits":[{{"policy":"{name}","key":["client_ip"]}}],"continue":true{rest}}}"#)
}

fn asked(rules: &[String]) -> Asked {
    asked_by(&rules.join(","), &TestRequest::new("GET", "/")).unwrap()
}

#[test]
fn the_shortest_timeout_holds() {
    let timeout = |rules: &[String]| asked(rules).timeout.ms();
    assert_eq!(timeout(&[rule("a", r#","timeout":"50ms""#), rule("b", r#","timeout":"40ms""#), rule("c", "")]), 25);
    assert_eq!(timeout(&[rule("a", r#","timeout":"10ms""#), rule("b", "")]), 10);
    // A rule that asks nothing about this request is not waited for.
    let skipped = r#"{"name":"s","limits":[{"policy":"s","key":[{"query":"q","missing":"skip"}]}],"timeout":"1ms","on_failure":"closed"}"#;
    let asked = asked(&[rule("a", ""), skipped.to_owned()]);
    assert_eq!(asked.timeout.ms(), 25);
    assert_eq!(judge(&asked, Outcome::Lost).label, VerdictLabel::FailureOpen);
}

const LOCAL: &str = r#","on_failure":{"local":{"capacity":1,"refill":1,"per":"1h"}}"#;

fn failed(rules: &[String]) -> Judgement {
    judge(&asked(rules), Outcome::Lost)
}

fn status(judgement: &Judgement) -> u16 {
    match &judgement.verdict {
        Verdict::Pass { .. } => 200,
        Verdict::Reject(rejection) => rejection.status.code(),
    }
}

#[test]
fn the_strictest_failure_verdict_holds() {
    let (open, closed) = (rule("open", ""), rule("closed", r#","on_failure":{"closed":{"status":503}}"#));
    let (local, closed_429) = (rule("local", LOCAL), rule("closed-429", r#","on_failure":"closed""#));
    let check = |rules: [&String; 2], label: VerdictLabel, decided: &str, expected: u16| {
        let judgement = failed(&rules.map(Clone::clone));
        assert_eq!((judgement.label, judgement.rule.as_str(), status(&judgement)), (label, decided, expected));
    };
    for rules in [[&open, &closed], [&closed, &open], [&local, &closed], [&closed, &local], [&closed, &closed_429]] {
        check(rules, VerdictLabel::FailureClosed, "closed", 503);
    }
    for rules in [[&open, &local], [&local, &open]] {
        check(rules, VerdictLabel::FailureLocal, "local", 200);
    }
}

#[test]
fn each_local_rule_counts_what_is_its_own() {
    let narrow = rule("narrow", LOCAL);
    let wide = rule("wide", &LOCAL.replace(r#""capacity":1"#, r#""capacity":2"#));
    let config = with_rules(&[rule("open", ""), wide, narrow].join(","));
    let (mut worker, shared) = (Worker::new(&config), Shared::default());
    let around = Surroundings { now_ms: 1_000, shared: &shared };
    let mut fail = || match worker.begin(&config, &TestRequest::new("GET", "/"), around) {
        Step::Ask(callout, ticket) => worker.finish(&callout.asked, ticket, Outcome::Lost, around),
        other => panic!("{other:?}"),
    };
    assert_eq!(fail().label, VerdictLabel::FailureLocal);
    let denied = fail();
    assert_eq!((denied.label, denied.rule.as_str()), (VerdictLabel::FailureLocalDenied, "narrow"));
}

#[test]
fn what_an_earlier_local_rule_took_is_given_back() {
    let wide = rule("wide", &LOCAL.replace(r#""capacity":1"#, r#""capacity":2"#));
    let narrow = rule("narrow", LOCAL).replace(r#""client_ip""#, r#"{"header":"x-account"}"#);
    let config = with_rules(&[wide, narrow].join(","));
    let (mut worker, shared) = (Worker::new(&config), Shared::default());
    let around = Surroundings { now_ms: 1_000, shared: &shared };
    let mut fail =
        |account: &str| match worker.begin(&config, &TestRequest::new("GET", "/").header("x-account", account), around)
        {
            Step::Ask(callout, ticket) => worker.finish(&callout.asked, ticket, Outcome::Lost, around),
            other => panic!("{other:?}"),
        };
    assert_eq!(fail("alice").label, VerdictLabel::FailureLocal);
    for _ in 0..3 {
        assert_eq!(fail("alice").rule.as_str(), "narrow");
    }
    assert_eq!(fail("bob").label, VerdictLabel::FailureLocal);
}

#[test]
fn a_rule_in_shadow_rejects_nothing_beside_an_enforced_one() {
    let shadow = rule("shadow", r#","on_failure":"closed","shadow":true"#);
    for rules in [[rule("open", ""), shadow.clone()], [shadow.clone(), rule("open", "")]] {
        let judgement = failed(&rules);
        assert_eq!((judgement.label, judgement.rule.as_str()), (VerdictLabel::FailureOpen, "open"));
        assert!(!judgement.measures.iter().any(|measure| matches!(measure.metric, Metric::Shadow { .. })));
    }
    let judgement = failed(&[shadow]);
    let verdict = VerdictLabel::FailureClosed;
    assert!(judgement.measures.contains(&Metric::Shadow { rule: "shadow".parse().unwrap(), verdict }.once()));
}

/// An answer with one result for each check.
fn answer(reasons: &[&str]) -> String {
    let result = |(check, reason): (usize, &&str)| {
        let (reason, shadow) = reason.strip_prefix("shadow ").map_or((*reason, false), |reason| (reason, true));
        serde_json::json!({
            "check": check, "policy": "p", "limit": "l", "allowed": reason == "ok", "reason": reason, "capacity": 1,
            "window_ms": 1, "remaining": 0, "retry_after_ms": 1, "next_ms": 1, "full_ms": 1, "shadow": shadow,
        })
    };
    let results: Vec<_> = reasons.iter().enumerate().map(result).collect();
    let allowed = reasons.iter().all(|reason| *reason == "ok" || reason.starts_with("shadow"));
    serde_json::json!({ "allowed": allowed, "results": results, "charge": "0.0.0" }).to_string()
}

#[test]
fn the_rule_whose_limit_denied_has_its_style_and_is_counted() {
    let rules = [rule("a", ""), rule("b", r#","reject":{"status":503}"#), rule("c", r#","reject":{"status":418}"#)];
    for (reasons, decided, expected) in
        [(["over_limit", "ok", "ok"], "a", 429), (["ok", "banned", "ok"], "b", 503), (["ok", "ok", "never"], "c", 418)]
    {
        let judgement = answered(&asked(&rules), 429, answer(&reasons));
        assert_eq!((judgement.rule.as_str(), status(&judgement)), (decided, expected));
        let counted = Metric::Requests { rule: decided.parse().unwrap(), verdict: judgement.label }.once();
        assert!(judgement.measures.contains(&counted), "{:?}", judgement.measures);
    }
    let allowed = answered(&asked(&rules), 200, answer(&["ok", "shadow over_limit", "ok"]));
    assert_eq!((allowed.rule.as_str(), allowed.label), ("c", VerdictLabel::Allowed));
    let shadow = Metric::Shadow { rule: "b".parse().unwrap(), verdict: VerdictLabel::OverLimit }.once();
    assert!(allowed.measures.contains(&shadow), "{:?}", allowed.measures);
}

#[test]
fn each_rule_gives_back_its_own_charge() {
    let rules = [
        rule("a", ""),
        rule("b", r#","charge":{"only_status":[401]}"#),
        rule("c", r#","charge":{"only_status":[403]}"#),
    ];
    let service = Service { cluster: "c".to_owned(), authority: "c".to_owned(), headers: Vec::new() };
    for (response, costs) in [(200, Some([0, 1, 1])), (401, Some([0, 0, 1])), (403, Some([0, 1, 0]))] {
        let Verdict::Pass { refund, .. } = answered(&asked(&rules), 200, answer(&["ok"; 3])).verdict else { panic!() };
        let callout = refund.unwrap().callout(Some(response), &service);
        let refunded = callout.map(|callout| {
            let body: serde_json::Value = serde_json::from_slice(&callout.body).unwrap();
            assert_eq!(body["charge"], "0.0.0");
            [0, 1, 2].map(|check: usize| body["checks"][check]["cost"].as_u64().unwrap())
        });
        assert_eq!(refunded, costs, "{response}");
    }
    let Verdict::Pass { refund, .. } = answered(&asked(&rules[..2]), 200, answer(&["ok"; 2])).verdict else { panic!() };
    assert!(refund.unwrap().callout(Some(401), &service).is_none());
    let Verdict::Pass { refund, .. } = answered(&asked(&rules[..1]), 200, answer(&["ok"])).verdict else { panic!() };
    assert!(refund.is_none());
}

#[test]
fn a_missing_key_is_rejected_in_the_style_of_its_rule() {
    let limit = r#"{"policy":"p","key":[{"header":"x-key","missing":"deny"}]}"#;
    let config = with_rules(&format!(
        r#"{},{{"name":"b","limits":[{limit}],"reject":{{"status":401,"headers":{{"www-authenticate":"Key"}}}}}}"#,
        rule("a", "")
    ));
    let shared = Shared::default();
    let begin = |request: &TestRequest| match Worker::new(&config).begin(
        &config,
        request,
        Surroundings { now_ms: 0, shared: &shared },
    ) {
        Step::Done(judgement) => judgement,
        other => panic!("{other:?}"),
    };
    let judgement = begin(&TestRequest::new("GET", "/"));
    assert_eq!((judgement.label.as_str(), judgement.rule.as_str()), ("missing_key", "b"));
    let Verdict::Reject(rejection) = judgement.verdict else { panic!() };
    assert_eq!((rejection.status.code(), rejection.details), (401, "sluicegate_missing_key"));
    let lines: Vec<_> = rejection.headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str())).collect();
    assert_eq!(
        lines,
        ["x-sluicegate-reason: missing_key", "content-type: application/problem+json", "www-authenticate: Key"]
    );
    assert!(rejection.body.contains(r#""status":401"#), "{}", rejection.body);
    let grpc = begin(&TestRequest::new("POST", "/").header("content-type", "application/grpc"));
    let Verdict::Reject(rejection) = grpc.verdict else { panic!() };
    assert_eq!((rejection.grpc_status.code(), rejection.headers.len()), (8, 2));
}
