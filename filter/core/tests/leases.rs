//! Leases: what is served from them, what is asked for and when, and what is given back.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;
mod leasing;

use common::TestRequest;
use leasing::{FOR_MS, Proxy, allowed, counts, denied, granted, hits, leased, path, response_headers};
use serde_json::json;
use sluicegate_filter_core::{Measure, Metric, Outcome, Step, Surroundings, TICK_MS, VerdictLabel};
use sluicegate_wire::LeaseRequest;

#[test]
fn a_cold_subject_never_asks() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    for _ in 0..200 {
        proxy.now_ms += 290;
        assert_eq!(
            hits(&{
                let asked = proxy.ask();
                let body = allowed(&asked.0);
                proxy.finish(asked, 200, &body)
            }),
            0
        );
        assert!(proxy.ticks(0..1).is_empty());
    }
}

#[test]
fn a_hot_one_asks_for_what_it_used_and_its_requests_pass_without_a_callout() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    let (request, ticket) = proxy.asked_for();
    assert_eq!((request.policy.as_str(), request.max.get(), request.for_ms.get()), ("p", 8, FOR_MS));
    assert!(proxy.ticks(0..9).is_empty(), "asked once");
    let (measures, _) = proxy.answer(&ticket, 200, &granted(8));
    let rule = || "r".parse().unwrap();
    assert_eq!(
        measures,
        [Metric::Leases { rule: rule() }.once(), Measure { metric: Metric::LeasedTokens { rule: rule() }, amount: 8 }]
    );
    proxy.now_ms += 300;
    let first = proxy.without_callout();
    assert_eq!((first.label, hits(&first), first.rule.as_str()), (VerdictLabel::Allowed, 1, "r"));
    // 40 with the service after the lease, and 7 here; 300 of 700 ms later.
    assert_eq!(response_headers(first), [r#"ratelimit: "l";r=47;t=1"#, r#"ratelimit-policy: "l";q=100;w=60"#]);
    assert_eq!(proxy.served(), 7);
    // It was used up fast, so the next one is larger.
    let sent = proxy.ticks(0..1);
    let request: LeaseRequest = serde_json::from_slice(&sent[0].body).unwrap();
    assert!((16..=17).contains(&request.max.get()), "{request:?}");
}

#[test]
fn nothing_is_served_after_its_time_whenever_the_answer_came() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    let (_, ticket) = proxy.asked_for();
    let asked_ms = proxy.now_ms - TICK_MS;
    proxy.now_ms += 900;
    proxy.answer(&ticket, 200, &granted(8));
    proxy.now_ms = asked_ms + FOR_MS - 101;
    proxy.without_callout();
    proxy.now_ms += 1;
    proxy.ask();
    proxy.assert_refunds(0..2, 7);
}

#[test]
fn a_clock_set_back_ends_a_lease() {
    let mut proxy = Proxy::holding(json!({ "limits": [leased("p")] }), 8);
    proxy.now_ms -= 60_000;
    proxy.ask();
    assert!(proxy.ticks(0..50).iter().all(|sent| path(sent) == "/v1/lease"), "how long it lasts nobody knows");
}

#[test]
fn an_idle_lease_is_given_back_once() {
    let mut proxy = Proxy::holding(json!({ "limits": [leased("p")] }), 8);
    proxy.without_callout();
    assert!(proxy.ticks(0..95).is_empty());
    proxy.assert_refunds(0..2, 7);
    assert!(proxy.ticks(0..200).is_empty());
    assert_eq!(proxy.served(), 0);
}

#[test]
fn what_could_not_be_given_back_in_time_is_lost() {
    let mut proxy = Proxy::holding(json!({ "limits": [leased("p")] }), 8);
    proxy.now_ms += FOR_MS;
    assert!(proxy.ticks(0..50).is_empty());
}

#[test]
fn an_answer_that_is_too_late_is_given_back() {
    for (late_ms, again) in [(1_600, true), (1_880, false)] {
        let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
        let (_, ticket) = proxy.asked_for();
        proxy.now_ms += late_ms;
        if again {
            // Somebody asked again meanwhile.
            (0..8).for_each(|_| drop(proxy.begin()));
            assert_eq!(proxy.ticks(0..1).len(), 1);
        } else {
            proxy.now_ms += 20;
        }
        proxy.answer(&ticket, 200, &granted(5));
        assert_eq!(proxy.served(), 0);
        proxy.assert_refunds(0..1, 5);
    }
}

#[test]
fn without_a_token_the_check_decides_and_nobody_asks_for_a_while() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    let (_, ticket) = proxy.asked_for();
    assert_eq!(proxy.answer(&ticket, 200, &granted(0)), (Vec::new(), None));
    let asked = proxy.ask();
    let judgement = proxy.finish(asked, 429, &denied("p"));
    assert_eq!(judgement.label, VerdictLabel::OverLimit);
    let cached = proxy.without_callout();
    assert_eq!(counts(&cached, |rule| Metric::DenyCacheHits { rule }), 1);
    assert!(proxy.ticks(0..70).is_empty());
    proxy.begin();
    assert_eq!(proxy.ticks(0..1).len(), 1, "700 ms are over");
}

/// A denial of a moment ago is no word about tokens that are here.
#[test]
fn what_is_no_answer_is_a_failure_and_is_tried_again_later() {
    for (status, body, kind, wait_ms) in [
        (404, String::new(), "config", 60_000),
        (422, String::new(), "config", 60_000),
        (503, String::new(), "unavailable", 1_000),
        (200, "{}".to_owned(), "malformed", 1_000),
        (200, granted(9), "malformed", 1_000),
        (429, granted(1), "malformed", 1_000),
    ] {
        let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
        let (_, ticket) = proxy.asked_for();
        let (measures, log) = proxy.answer(&ticket, status, &body);
        assert!(log.unwrap().starts_with(&format!("rule r: there is no lease: {kind}: ")), "{status}");
        let [Measure { metric: Metric::CalloutFailures { kind: counted }, amount: 1 }] = measures.as_slice() else {
            panic!("{measures:?}")
        };
        assert_eq!(counted.as_str(), kind);
        let failed_ms = proxy.now_ms;
        // Requests go on as without leases.
        while proxy.now_ms < failed_ms + wait_ms - 210 {
            proxy.now_ms += 200;
            proxy.ask();
            assert!(proxy.ticks(0..1).is_empty(), "{} ms after {status}", proxy.now_ms - failed_ms);
        }
        proxy.now_ms = failed_ms + wait_ms;
        proxy.ask();
        assert_eq!(proxy.ticks(0..1).len(), 1, "{status}");
    }
}

#[test]
fn a_refused_policy_is_not_asked_about_for_other_subjects_either() {
    let limit = json!({ "policy": "p", "key": [{ "header": "x-key" }], "lease": { "tokens": 50, "for": "2s" } });
    let mut proxy = Proxy::new(json!({ "limits": [limit] }));
    let (_, ticket) = proxy.asked_for();
    proxy.answer(&ticket, 422, "");
    let request = TestRequest::new("GET", "/x").header("x-key", "another");
    for _ in 0..20 {
        let around = Surroundings { now_ms: proxy.now_ms, shared: &proxy.shared };
        assert!(matches!(proxy.worker.begin(&proxy.config, &request, around), Step::Ask(..)));
    }
    assert!(proxy.ticks(0..9).is_empty());
}

#[test]
fn a_request_that_costs_more_than_is_left_is_asked_about() {
    let mut limit = leased("p");
    limit["cost"] = json!({ "from": { "query": "n" }, "max": 50 });
    let mut proxy = Proxy::holding(json!({ "limits": [limit] }), 8);
    let cost = |proxy: &mut Proxy, cost: u64| {
        let request = TestRequest::new("GET", format!("/x?n={cost}"));
        let around = Surroundings { now_ms: proxy.now_ms, shared: &proxy.shared };
        matches!(proxy.worker.begin(&proxy.config, &request, around), Step::Done(_))
    };
    assert_eq!([5, 4, 3, 1].map(|tokens| cost(&mut proxy, tokens)), [true, false, true, false]);
}

#[test]
fn a_refused_callout_is_a_failure() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    let (_, ticket) = proxy.asked_for();
    let around = Surroundings { now_ms: proxy.now_ms, shared: &proxy.shared };
    let (measures, log) = proxy.worker.leased(&ticket, Outcome::Refused, around);
    assert_eq!((measures.len(), log.is_some()), (1, true));
}
