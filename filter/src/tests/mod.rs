//! The shell in a proxy of literals: what a real one does rarely, or only in a race.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "a test may panic")]

mod abi;
mod host;

use std::{sync::Barrier, thread};

use host::{SharedValues, Worker, with_host};
use proxy_wasm::types::Action;
use serde_json::{Value, json};

const ROOT: u32 = 1;
const REQUEST: [(&str, &str); 3] = [(":method", "GET"), (":path", "/x"), ("x-sluicegate-reason", "forged")];

/// A configuration with one rule of these fields.
fn configuration(name: &str, fields: &Value) -> Value {
    let mut rule = json!({ "name": name, "limits": [{ "policy": name, "key": ["client_ip"] }], "timeout": "70ms" });
    rule.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "service": { "cluster": "sluicegate" }, "rules": [rule], "breaker": { "failures": 3, "open_for": "1s" } })
}

fn started(fields: &Value) -> Worker {
    let worker = Worker::new();
    assert!(worker.configure(ROOT, &configuration("r", fields)));
    worker
}

fn closed() -> Worker {
    started(&json!({ "on_failure": "closed" }))
}

/// An answer of one limit.
fn body(reason: &str) -> String {
    let result = json!({
        "check": 0, "policy": "r", "limit": "l", "allowed": reason == "ok", "reason": reason, "capacity": 9,
        "window_ms": 1000, "remaining": 5, "retry_after_ms": 0, "next_ms": 1000, "full_ms": 1000,
    });
    json!({ "allowed": reason == "ok", "results": [result] }).to_string()
}

fn resumed() -> Vec<u32> {
    with_host(|host| std::mem::take(&mut host.resumed))
}

#[track_caller]
fn assert_no_bad_reads() {
    assert_eq!(with_host(|host| host.bad_reads), 0);
}

#[test]
fn a_request_is_held_and_then_goes_on() {
    let worker = closed();
    assert_eq!(worker.request(ROOT, 2, &REQUEST), Action::Pause);
    assert_eq!(with_host(|host| host.removed_headers.clone()), [b"x-sluicegate-reason"]);
    let call = worker.call();
    assert_eq!((call.path.as_str(), call.timeout_ms), ("/v1/check", 70));
    worker.answer(call.token, "200", &body("ok"));
    assert_eq!(resumed(), [2]);
    assert_eq!(worker.response(2, "200"), Action::Continue);
    assert_eq!(
        with_host(|host| host.added_headers.clone()),
        [r#"ratelimit: "l";r=5;t=1"#, r#"ratelimit-policy: "l";q=9;w=1"#]
    );
    let state = with_host(|host| host.filter_state.clone());
    assert_eq!((state["sluicegate_rule"].as_str(), state["sluicegate_verdict"].as_str()), ("r", "allowed"));
    worker.end(2);
    assert_no_bad_reads();
}

#[test]
fn an_answer_without_headers_is_a_failure_and_nothing_of_it_is_read() {
    let worker = closed();
    worker.request(ROOT, 2, &REQUEST);
    worker.lost(worker.call().token);
    let (response, reason) = worker.response_made().unwrap();
    assert_eq!((response.status, reason.as_str(), response.grpc_status), (429, "failure_closed", 14));
    assert_eq!(response.details, "sluicegate_failure_closed");
    assert!(resumed().is_empty());
    assert_no_bad_reads();
}

#[test]
fn an_answer_after_the_request_is_gone_changes_nothing() {
    let worker = closed();
    worker.request(ROOT, 2, &REQUEST);
    let call = worker.call();
    worker.end(2);
    worker.answer(call.token, "429", &body("over_limit"));
    assert!(worker.response_made().is_none() && resumed().is_empty());
    // A stream with the same id is another one.
    assert_eq!(worker.request(ROOT, 2, &REQUEST), Action::Pause);
    worker.answer(worker.call().token, "200", &body("ok"));
    assert_eq!(resumed(), [2]);
}

#[test]
fn a_probe_whose_request_is_gone_is_followed_by_another() {
    let worker = closed();
    with_host(|host| host.refuse_calls = true);
    for id in 2..5 {
        worker.request(ROOT, id, &REQUEST);
        worker.response_made().unwrap();
    }
    with_host(|host| (host.refuse_calls, host.now_ms) = (false, host.now_ms + 1_000));
    assert_eq!(worker.metric("sluicegate_breaker_open"), 1);
    worker.request(ROOT, 5, &REQUEST);
    worker.request(ROOT, 6, &REQUEST);
    assert_eq!(worker.calls(), 1, "one probe at a time");
    worker.end(5);
    worker.request(ROOT, 7, &REQUEST);
    assert_eq!(worker.calls(), 2);
    worker.answer(worker.call().token, "200", &body("ok"));
    assert_eq!((resumed(), worker.metric("sluicegate_breaker_open")), (vec![7], 0));
}

#[test]
fn a_metric_is_defined_once() {
    let worker = started(&json!({}));
    for id in 2..9 {
        worker.request(ROOT, id, &REQUEST);
        worker.answer(worker.call().token, "200", &body("ok"));
    }
    assert_eq!(worker.metric("sluicegate_requests_total.rule.=.r.;.verdict.=.allowed.;"), 7);
    assert_eq!(worker.metric("sluicegate_callout_ms"), 7);
    assert_eq!(with_host(|host| host.defined), 2);
}

#[test]
fn a_callout_that_the_proxy_refuses_is_a_failure_at_once() {
    let worker = started(&json!({}));
    with_host(|host| host.refuse_calls = true);
    assert_eq!(worker.request(ROOT, 2, &REQUEST), Action::Continue);
    worker.response(2, "200");
    assert_eq!(with_host(|host| host.added_headers.clone()), ["x-sluicegate-reason: failure_open"]);
    assert_eq!(worker.metric("sluicegate_callout_failures_total.kind.=.dispatch_refused.;"), 1);
    assert!(with_host(|host| host.log.clone())[0].contains("dispatch_refused"));
    assert!(resumed().is_empty());
}

#[test]
fn a_response_that_the_proxy_refuses_resets_the_request() {
    let worker = closed();
    with_host(|host| host.refuse_responses = true);
    worker.request(ROOT, 2, &REQUEST);
    worker.lost(worker.call().token);
    assert_eq!(with_host(|host| host.reset.clone()), [2]);
}

#[test]
fn requests_finish_under_the_configuration_that_they_began_with() {
    let worker = Worker::new();
    assert!(worker.configure(1, &configuration("old", &json!({ "on_failure": { "closed": { "status": 503 } } }))));
    worker.request(1, 10, &REQUEST);
    let old = worker.call();
    assert!(worker.configure(2, &configuration("new", &json!({ "on_failure": "closed" }))));
    worker.request(2, 11, &REQUEST);
    let new = worker.call();
    worker.lost(old.token);
    assert_eq!(worker.response_made().unwrap().0.status, 503);
    worker.lost(new.token);
    assert_eq!(worker.response_made().unwrap().0.status, 429);

    // The old one's breaker opens for nobody else, and is no longer counted when the old one ends.
    for id in 12..14 {
        worker.request(1, id, &REQUEST);
        worker.lost(worker.call().token);
        worker.response_made().unwrap();
    }
    assert_eq!(worker.metric("sluicegate_breaker_open"), 1);
    assert_eq!(worker.request(2, 20, &REQUEST), Action::Pause);
    for id in [10, 12, 13, 1] {
        worker.end(id);
    }
    assert_eq!(worker.metric("sluicegate_breaker_open"), 0);
    worker.answer(worker.call().token, "200", &body("ok"));
    assert_eq!(resumed(), [20]);
}

#[test]
fn a_bad_configuration_is_refused_by_name() {
    let worker = Worker::new();
    assert!(!worker.configure(ROOT, &configuration("r", &json!({ "on_failur": "closed" }))));
    assert!(with_host(|host| host.log.clone())[0].contains("rules[0].on_failur"));
    // A proxy keeps the old configuration then; a request that comes all the same passes.
    assert_eq!(worker.request(ROOT, 2, &REQUEST), Action::Continue);
}

#[test]
fn a_refund_is_sent_once_the_status_is_known_and_its_answer_changes_nothing() {
    let worker = started(&json!({ "charge": { "only_status": [401] } }));
    for (id, status, refunds) in [(2, "401", 0), (3, "200", 1)] {
        worker.request(ROOT, id, &REQUEST);
        worker.answer(worker.call().token, "200", &body("ok"));
        let asked = worker.calls();
        assert_eq!(worker.response(id, status), Action::Continue);
        assert_eq!(worker.calls() - asked, refunds, "{status}");
    }
    let refund = worker.call();
    assert_eq!((refund.path.as_str(), refund.timeout_ms), ("/v1/refund", 70));
    assert_eq!(refund.body, r#"{"checks":[{"policy":"r","key":"203.0.113.7","cost":1}]}"#);
    assert_eq!(resumed(), [2, 3]);
    worker.lost(refund.token);
    assert!(resumed().is_empty() && worker.response_made().is_none());
    assert_eq!(worker.metric("sluicegate_refunds_total.rule.=.r.;"), 1);
    assert_no_bad_reads();
}

/// Two workers at once, each in a thread and a VM of its own, over shared data with Envoy's rules.
#[test]
fn workers_that_race_for_a_bucket_admit_exactly_its_capacity() {
    const REQUESTS: u32 = 400;
    const CAPACITY: usize = 300;
    let local = json!({ "on_failure": { "local": { "capacity": CAPACITY, "refill": 1, "per": "365d" } } });
    let (shared, barrier) = (SharedValues::default(), Barrier::new(2));
    let race = || {
        let worker = Worker::sharing(&shared);
        assert!(worker.configure(ROOT, &configuration("r", &local)));
        with_host(|host| host.refuse_calls = true);
        barrier.wait();
        let passed = (0..REQUESTS).filter(|index| worker.request(ROOT, 10 + index, &REQUEST) == Action::Continue);
        passed.count()
    };
    let passed = thread::scope(|scope| {
        let other = scope.spawn(race);
        race() + other.join().unwrap()
    });
    assert_eq!(passed, CAPACITY);
    assert_eq!(shared.keys().len(), 1);
    assert!(shared.keys()[0].starts_with("sluicegate.limits.local."), "{:?}", shared.keys());
}

/// What the service says to a lease.
fn lease_body(granted: u64) -> String {
    let answer: Value = serde_json::from_str(&body(if granted > 0 { "ok" } else { "over_limit" })).unwrap();
    json!({ "granted": granted, "result": answer["results"][0] }).to_string()
}

fn leasing() -> Value {
    let limit = json!({ "policy": "r", "key": ["client_ip"], "lease": { "tokens": 50, "for": "2s" } });
    json!({ "limits": [limit], "on_failure": "closed" })
}

/// Requests until the subject is hot, each asked about.
fn heat(worker: &Worker, ids: std::ops::Range<u32>) {
    for id in ids {
        assert_eq!(worker.request(ROOT, id, &REQUEST), Action::Pause);
        worker.answer(worker.call().token, "200", &body("ok"));
        worker.response(id, "200");
        worker.end(id);
    }
}

#[test]
fn a_lease_outlives_the_request_that_asked_for_it_and_serves_without_a_callout() {
    let worker = started(&leasing());
    assert_eq!(with_host(|host| host.tick_ms), 10);
    heat(&worker, 2..10);
    assert_eq!(worker.calls(), 8);
    worker.tick(ROOT);
    let lease = worker.call();
    assert_eq!((worker.calls(), lease.path.as_str(), lease.timeout_ms), (9, "/v1/lease", 1_000));
    assert_eq!(lease.body, r#"{"policy":"r","key":"203.0.113.7","max":8,"for_ms":2000}"#);
    worker.answer(lease.token, "200", &lease_body(8));
    resumed();
    for id in 20..24 {
        assert_eq!(worker.request(ROOT, id, &REQUEST), Action::Continue);
        worker.end(id);
    }
    assert_eq!(worker.calls(), 9);
    assert_eq!(worker.metric("sluicegate_lease_hits_total.rule.=.r.;"), 4);
    assert_eq!(worker.metric("sluicegate_leases_total.rule.=.r.;"), 1);
    assert_eq!(worker.metric("sluicegate_leased_tokens_total.rule.=.r.;"), 8);
    // Nobody asks any more: it goes back, once.
    with_host(|host| host.now_ms += 1_001);
    (0..9).for_each(|_| worker.tick(ROOT));
    let refund = worker.call();
    assert_eq!((worker.calls(), refund.path.as_str()), (10, "/v1/refund"));
    assert_eq!(refund.body, r#"{"checks":[{"policy":"r","key":"203.0.113.7","cost":4}]}"#);
    assert_eq!(worker.metric("sluicegate_lease_returned_tokens_total"), 4);
    worker.lost(refund.token);
    assert_no_bad_reads();
}

#[test]
fn a_service_without_leases_is_asked_for_one_once_a_minute() {
    let worker = started(&leasing());
    heat(&worker, 2..10);
    worker.tick(ROOT);
    worker.answer(worker.call().token, "404", "");
    assert_eq!(worker.metric("sluicegate_callout_failures_total.kind.=.config.;"), 1);
    assert!(with_host(|host| host.log.clone())[0].contains("rule r: there is no lease: config: status 404"));
    for id in 20..60 {
        with_host(|host| host.now_ms += 100);
        heat(&worker, id..id + 1);
        worker.tick(ROOT);
    }
    assert_eq!(worker.calls(), 49);
    assert_eq!(worker.metric("sluicegate_requests_total.rule.=.r.;.verdict.=.allowed.;"), 48);
}

/// The old configuration's root context asks, the new one's requests find what is there.
#[test]
fn leases_stay_through_a_reload() {
    let worker = started(&leasing());
    heat(&worker, 2..10);
    worker.tick(ROOT);
    worker.answer(worker.call().token, "200", &lease_body(8));
    assert!(worker.configure(2, &configuration("r", &leasing())));
    assert_eq!(worker.request(2, 20, &REQUEST), Action::Continue);
    assert_eq!(worker.calls(), 9);
}

/// Workers that never meet a limit with a lease, as a proxy's main thread, look after none.
#[test]
fn who_sees_no_request_looks_at_nothing() {
    let worker = started(&leasing());
    (0..100).for_each(|_| worker.tick(ROOT));
    assert!(with_host(|host| host.shared.clone()).keys().is_empty());
}

#[test]
fn without_leases_nothing_ticks() {
    started(&json!({}));
    assert_eq!(with_host(|host| host.tick_ms), 0);
}

/// Two workers at once, as above: a lease is served once.
#[test]
fn workers_that_race_for_a_lease_serve_exactly_what_it_has() {
    const REQUESTS: u32 = 400;
    let (shared, barrier) = (SharedValues::default(), Barrier::new(2));
    let first = Worker::sharing(&shared);
    assert!(first.configure(ROOT, &configuration("r", &leasing())));
    heat(&first, 2..60);
    first.tick(ROOT);
    // Asked when the subject was hot first, and answered with less than could be.
    let lease = first.call();
    let max = serde_json::from_str::<Value>(&lease.body).unwrap()["max"].as_u64().unwrap();
    first.answer(lease.token, "200", &lease_body(max));
    let race = |worker: &Worker| {
        with_host(|host| host.refuse_calls = true);
        barrier.wait();
        let served = (0..REQUESTS).filter(|index| worker.request(ROOT, 100 + index, &REQUEST) == Action::Continue);
        served.count() as u64
    };
    let served = thread::scope(|scope| {
        let other = scope.spawn(|| {
            let worker = Worker::sharing(&shared);
            assert!(worker.configure(ROOT, &configuration("r", &leasing())));
            race(&worker)
        });
        race(&first) + other.join().unwrap()
    });
    assert_eq!(served, max);
}
