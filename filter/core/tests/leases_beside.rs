//! Leases beside what is asked about: other limits, denials, failures and shadow.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;
mod leasing;

use leasing::{FOR_MS, Proxy, denied, granted, hits, leased, plain, response_headers, result};
use serde_json::{Value, json};
use sluicegate_filter_core::VerdictLabel;

#[test]
fn while_there_is_a_lease_nothing_is_denied() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    let (_, ticket) = proxy.asked_for();
    let asked = proxy.ask();
    proxy.finish(asked, 429, &denied("p"));
    assert_eq!(proxy.without_callout().label, VerdictLabel::OverLimit);
    proxy.answer(&ticket, 200, &granted(2));
    assert_eq!(
        [0; 3].map(|_| proxy.without_callout().label),
        [VerdictLabel::Allowed, VerdictLabel::Allowed, VerdictLabel::OverLimit]
    );
}

#[test]
fn only_what_is_not_leased_is_asked_and_its_denial_gives_back() {
    let mut proxy = Proxy::holding(json!({ "limits": [leased("p"), plain("q")], "on_failure": "closed" }), 3);
    let asked = proxy.ask();
    let checks = &asked.0.asked.question.checks;
    assert_eq!((checks.len(), checks[0].policy.as_str()), (1, "q"));
    assert_eq!(serde_json::from_slice::<Value>(&asked.0.body).unwrap()["checks"].as_array().unwrap().len(), 1);
    // Both have their say in the headers: 42 of p are the fewest.
    let judgement =
        proxy.finish(asked, 200, &json!({ "allowed": true, "results": [result(0, "q", "ok", 60)] }).to_string());
    assert_eq!(hits(&judgement), 1);
    assert!(response_headers(judgement)[0].starts_with(r#"ratelimit: "p.l";r=42;"#));
    // 2 are left, however often q denies: by an answer, from the cache, or by a failure.
    for _ in 0..3 {
        let asked = proxy.ask();
        assert_eq!(proxy.finish(asked, 429, &denied("q")).label, VerdictLabel::OverLimit);
        for _ in 0..3 {
            assert_eq!(proxy.without_callout().label, VerdictLabel::OverLimit);
        }
        proxy.now_ms += 500;
        let asked = proxy.ask();
        assert_eq!(proxy.finish(asked, 503, "").label, VerdictLabel::FailureClosed);
    }
    let answers: Vec<_> = (0..3).map(|_| proxy.ask().0.asked.question.checks.len()).collect();
    assert_eq!(answers, [1, 1, 2]);
}

#[test]
fn what_a_denied_request_took_goes_back_to_the_service_when_the_lease_is_over() {
    let mut proxy = Proxy::holding(json!({ "limits": [leased("p"), plain("q")], "timeout": "5s" }), 1);
    let asked = proxy.ask();
    assert_eq!(asked.0.asked.question.checks.len(), 1);
    proxy.now_ms += FOR_MS - 50;
    proxy.finish(asked, 429, &denied("q"));
    assert_eq!(proxy.ask().0.asked.question.checks.len(), 2);
    proxy.assert_refunds(0..2, 1);
}

#[test]
fn a_pass_under_a_failure_verdict_stays_charged() {
    let mut proxy = Proxy::holding(json!({ "limits": [leased("p"), plain("q")] }), 2);
    for expected in [1, 1, 2] {
        let asked = proxy.ask();
        assert_eq!(asked.0.asked.question.checks.len(), expected);
        assert_eq!(proxy.finish(asked, 400, "").label, VerdictLabel::FailureOpen);
    }
}

#[test]
fn leases_are_served_in_an_outage_and_none_is_asked_for() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")], "on_failure": "closed" }));
    let (_, ticket) = proxy.asked_for();
    let (first, second) = (proxy.ask(), proxy.ask());
    proxy.answer(&ticket, 200, &granted(3));
    for asked in [first, second] {
        assert_eq!(proxy.finish(asked, 503, "").label, VerdictLabel::FailureClosed);
    }
    // The breaker is open.
    assert_eq!([0; 3].map(|_| proxy.without_callout().label), [VerdictLabel::Allowed; 3]);
    let judgement = proxy.without_callout();
    assert_eq!(judgement.label, VerdictLabel::FailureClosed);
    assert!(proxy.ticks(0..50).is_empty());
}

#[test]
fn limits_in_shadow_are_asked_about_each_time() {
    let mut limit = leased("p");
    limit["shadow"] = true.into();
    let mut proxy = Proxy::new(json!({ "limits": [limit] }));
    for _ in 0..100 {
        proxy.ask();
    }
    assert!(proxy.ticks(0..9).is_empty());
}

#[test]
fn a_rule_whose_limits_are_leased_has_no_say_in_the_wait_for_the_others() {
    let mut proxy = Proxy::with_rules(&json!([
        { "name": "r", "limits": [leased("p")], "timeout": "5ms", "on_failure": "closed", "continue": true },
        { "name": "s", "limits": [plain("q")], "timeout": "50ms" },
    ]));
    proxy.lease(1);
    let asked = proxy.ask();
    assert_eq!(asked.0.timeout.ms(), 50);
    let judgement = proxy.finish(asked, 503, "");
    assert_eq!((judgement.label, judgement.rule.as_str()), (VerdictLabel::FailureOpen, "s"));
    let asked = proxy.ask();
    assert_eq!(asked.0.timeout.ms(), 5);
    assert_eq!(proxy.finish(asked, 429, &denied("p")).rule.as_str(), "r");
}
