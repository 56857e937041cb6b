//! What a worker remembers from request to request: breaker, deny cache, local buckets, shadow and refunds.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use common::{Shared, TestRequest, reply};
use serde_json::{Value, json};
use sluicegate_filter_core::{
    Asked, Callout, Config, Judgement, Metric, Outcome, Refund, Rejection, Step, Surroundings, Ticket, Verdict,
    VerdictLabel, Worker,
};

/// A proxy with one worker, at a time that the test sets.
struct Proxy {
    config: Config,
    worker: Worker,
    shared: Shared,
    now_ms: u64,
}

impl Proxy {
    fn new(rule: Value, top: Value) -> Self {
        let mut whole = json!({ "service": { "cluster": "c", "headers": { "token": "t" } }, "rules": [{
            "name": "r", "match": { "path": { "prefix": "/" } },
            "limits": [{ "policy": "p", "key": [{ "header": "x-key" }] }],
        }] });
        for (fields, at) in [(top, ""), (rule, "/rules/0")] {
            let target = whole.pointer_mut(at).unwrap().as_object_mut().unwrap();
            target.extend(fields.as_object().unwrap().clone());
        }
        let config = Config::parse(whole.to_string().as_bytes()).unwrap();
        Self { worker: Worker::new(&config), config, shared: Shared::default(), now_ms: 1_000_000 }
    }

    fn begin(&mut self, key: &str) -> Step {
        let request = TestRequest::new("GET", "/x").header("x-key", key);
        self.worker.begin(&self.config, &request, Surroundings { now_ms: self.now_ms, shared: &self.shared })
    }

    #[track_caller]
    fn ask(&mut self, key: &str) -> (Callout, Ticket) {
        match self.begin(key) {
            Step::Ask(callout, ticket) => (callout, ticket),
            step => panic!("not asked: {step:?}"),
        }
    }

    #[track_caller]
    fn without_callout(&mut self, key: &str) -> Judgement {
        match self.begin(key) {
            Step::Done(judgement) => judgement,
            step => panic!("not decided: {step:?}"),
        }
    }

    fn finish(&mut self, asked: &Asked, ticket: Ticket, outcome: Outcome<'_>) -> Judgement {
        let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
        self.worker.finish(asked, ticket, outcome, around)
    }

    #[track_caller]
    fn answered(&mut self, key: &str, status: u16, body: &str) -> Judgement {
        let (callout, ticket) = self.ask(key);
        self.finish(&callout.asked, ticket, reply(status, body.as_bytes()))
    }

    #[track_caller]
    fn failed(&mut self, key: &str) -> Judgement {
        let (callout, ticket) = self.ask(key);
        self.finish(&callout.asked, ticket, Outcome::Lost)
    }
}

fn result(reason: &str, shadow: bool) -> Value {
    json!({
        "check": 0, "policy": "p", "limit": "l", "allowed": reason == "ok", "reason": reason, "capacity": 10,
        "window_ms": 10_000, "remaining": 3, "retry_after_ms": if reason == "ok" { 0 } else { 4_000 },
        "next_ms": 1_000, "full_ms": 7_000, "shadow": shadow,
    })
}

fn allowed() -> String {
    json!({ "allowed": true, "results": [result("ok", false)], "charge": "stamp" }).to_string()
}

fn denied(deny_cache_ms: u64) -> String {
    json!({ "allowed": false, "results": [result("over_limit", false)], "deny_cache_ms": deny_cache_ms }).to_string()
}

#[track_caller]
fn rejected(judgement: Judgement) -> Rejection {
    match judgement.verdict {
        Verdict::Reject(rejection) => rejection,
        Verdict::Pass { .. } => panic!("passed"),
    }
}

#[track_caller]
fn passed(judgement: Judgement) -> (Vec<String>, Option<Refund>) {
    match judgement.verdict {
        Verdict::Pass { response_headers, refund } => {
            let lines = response_headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str()));
            (lines.collect(), refund)
        }
        Verdict::Reject(rejection) => panic!("{rejection:?}"),
    }
}

fn header<'a>(rejection: &'a Rejection, name: &str) -> Option<&'a str> {
    rejection.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn names(judgement: &Judgement) -> Vec<String> {
    let form = sluicegate_filter_core::LabelForm::Envoy;
    judgement.measures.iter().map(|measure| format!("{} {}", measure.metric.name(form), measure.amount)).collect()
}

#[test]
fn a_denial_of_a_moment_ago_needs_no_callout() {
    let mut proxy = Proxy::new(json!({}), json!({ "deny_cache": { "max_life": "10s" } }));
    let first = rejected(proxy.answered("a", 429, &denied(4_000)));
    proxy.now_ms += 1_500;
    let again = proxy.without_callout("a");
    assert!(names(&again).contains(&"sluicegate_deny_cache_hits_total.rule.=.r.; 1".to_owned()), "{again:?}");
    let again = rejected(again);
    assert_eq!((again.status, &again.body, again.details), (first.status, &first.body, first.details));
    assert_eq!((header(&first, "retry-after"), header(&again, "retry-after")), (Some("4"), Some("3")));
    let names = |rejection: &Rejection| rejection.headers.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&again), names(&first));
    proxy.ask("b");
    proxy.now_ms += 2_500;
    proxy.ask("a");
}

#[test]
fn a_denial_that_a_ban_must_count_is_asked_again() {
    let mut proxy = Proxy::new(json!({}), json!({}));
    for _ in 0..3 {
        rejected(proxy.answered("a", 429, &denied(0)));
    }
}

#[test]
fn an_open_breaker_needs_no_callout_and_one_answer_closes_it() {
    let mut proxy = Proxy::new(json!({ "on_failure": "closed" }), json!({ "breaker": { "failures": 3 } }));
    for failures in 1..=3 {
        let opened = names(&proxy.failed("a")).contains(&"sluicegate_breaker_open 1".to_owned());
        assert_eq!(opened, failures == 3);
    }
    let open = proxy.without_callout("a");
    assert_eq!((open.label, open.log.as_ref()), (VerdictLabel::FailureClosed, None));
    let expected = [
        "sluicegate_callout_failures_total.kind.=.breaker_open.; 1",
        "sluicegate_requests_total.rule.=.r.;.verdict.=.failure_closed.; 1",
    ];
    assert_eq!(names(&open), expected);
    assert_eq!(header(&rejected(open), "x-sluicegate-reason"), Some("failure_closed"));
    assert!(proxy.worker.end().is_some_and(|measure| measure.amount == -1));

    proxy.now_ms += 1_000;
    let (probe, ticket) = proxy.ask("a");
    proxy.without_callout("a");
    proxy.worker.abandon(ticket, proxy.now_ms);
    drop(probe);
    let closed = proxy.answered("a", 200, &allowed());
    assert!(names(&closed).contains(&"sluicegate_breaker_open -1".to_owned()));
    assert_eq!(proxy.worker.end(), None);
    proxy.ask("a");
}

#[test]
fn questions_that_the_service_refuses_leave_the_breaker_closed() {
    let mut proxy = Proxy::new(json!({}), json!({}));
    for _ in 0..50 {
        assert_eq!(proxy.answered("a", 404, "").label, VerdictLabel::FailureOpen);
    }
}

#[test]
fn local_buckets_pass_what_they_hold_and_say_when_to_come_back() {
    let local = json!({ "local": { "capacity": 2, "refill": 1, "per": "1m" } });
    let mut proxy = Proxy::new(json!({ "on_failure": local }), json!({}));
    for key in ["a", "b"] {
        for _ in 0..2 {
            let step = proxy.begin(key);
            let judgement = match step {
                Step::Ask(callout, ticket) => proxy.finish(&callout.asked, ticket, Outcome::Lost),
                Step::Done(judgement) => judgement,
                Step::Pass(_) => panic!("passed"),
            };
            assert_eq!(judgement.label, VerdictLabel::FailureLocal);
            assert_eq!(passed(judgement).0, ["x-sluicegate-reason: failure_local"]);
        }
    }
    proxy.now_ms += 500;
    let denied = proxy.failed("a");
    assert_eq!(denied.label.as_str(), "failure_local_denied");
    let denied = rejected(denied);
    assert_eq!((denied.status.code(), denied.details), (429, "sluicegate_failure_local"));
    assert_eq!(header(&denied, "x-sluicegate-reason"), Some("failure_local"));
    assert_eq!(header(&denied, "retry-after"), Some("60"));
    assert!(denied.body.contains("#temporary-reduced-capacity"), "{}", denied.body);
}

#[test]
fn each_subject_of_a_rule_has_a_bucket_of_its_own() {
    let rule = json!({
        "on_failure": { "local": { "capacity": 2, "refill": 1, "per": "1d" } },
        "limits": [
            { "policy": "a", "key": ["client_ip"] },
            { "policy": "b", "key": ["client_ip"] },
            { "policy": "c", "key": [{ "header": "x-key" }] },
        ],
    });
    let mut proxy = Proxy::new(rule, json!({ "breaker": { "failures": 0 } }));
    // Another account each time is no way around the limit of the address.
    let labels: Vec<_> = (0..4).map(|account| proxy.failed(&account.to_string()).label).collect();
    let (pass, deny) = (VerdictLabel::FailureLocal, VerdictLabel::FailureLocalDenied);
    assert_eq!(labels, [pass, pass, deny, deny]);
}

#[test]
fn shadow_marks_and_rejects_nothing() {
    let rule = json!({ "shadow": true, "on_failure": "closed" });
    let mut proxy = Proxy::new(rule, json!({ "breaker": { "failures": 0 } }));
    let (callout, ticket) = proxy.ask("a");
    assert!(String::from_utf8(callout.body).unwrap().contains(r#""shadow":true"#));
    let body = json!({ "allowed": true, "results": [result("banned", true)] }).to_string();
    let judgement = proxy.finish(&callout.asked, ticket, reply(200, body.as_bytes()));
    let expected = [
        "sluicegate_shadow_total.rule.=.r.;.verdict.=.banned.; 1",
        "sluicegate_requests_total.rule.=.r.;.verdict.=.allowed.; 1",
        "sluicegate_callout_ms 0",
    ];
    assert_eq!(names(&judgement), expected);
    assert_eq!(passed(judgement).0, ["x-sluicegate-shadow: banned"]);

    let failed = proxy.failed("a");
    assert!(names(&failed).contains(&"sluicegate_shadow_total.rule.=.r.;.verdict.=.failure_closed.; 1".to_owned()));
    assert_eq!(passed(failed).0, ["x-sluicegate-shadow: failure_closed"]);
}

#[test]
fn a_shadow_limit_beside_an_enforced_one_leaves_it_its_say() {
    let mut proxy = Proxy::new(json!({}), json!({}));
    let results = [result("over_limit", false), result("never", true)];
    let body = json!({ "allowed": false, "results": results }).to_string();
    let rejection = rejected(proxy.answered("a", 429, &body));
    assert_eq!(header(&rejection, "x-sluicegate-reason"), Some("over_limit"));
    assert_eq!(header(&rejection, "x-sluicegate-shadow"), Some("never"));
}

#[test]
fn a_charge_is_given_back_after_another_status() {
    let mut proxy = Proxy::new(json!({ "charge": { "only_status": [401, 403] }, "timeout": "70ms" }), json!({}));
    let mut refund = |status| {
        let judgement = proxy.answered("a", 200, &allowed());
        passed(judgement).1.unwrap().callout(status, &proxy.config.service)
    };
    for status in [Some(401), Some(403), None] {
        assert!(refund(status).is_none(), "{status:?}");
    }
    let callout = refund(Some(200)).unwrap();
    assert_eq!(
        String::from_utf8(callout.body).unwrap(),
        r#"{"checks":[{"policy":"p","key":"a","cost":1}],"charge":"stamp"}"#
    );
    let headers: Vec<_> = callout.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert!(headers.contains(&(":path", "/v1/refund")) && headers.contains(&("token", "t")), "{headers:?}");
    assert_eq!(callout.timeout.ms(), 70);
    assert_eq!(callout.measure, Metric::Refunds { rule: "r".parse().unwrap() }.once());
}

#[test]
fn what_was_not_charged_is_never_given_back() {
    let mut proxy = Proxy::new(json!({ "charge": { "only_status": [401] } }), json!({}));
    assert!(passed(proxy.failed("a")).1.is_none(), "a pass under a failure verdict");
    let mut proxy = Proxy::new(json!({}), json!({}));
    assert!(passed(proxy.answered("a", 200, &allowed())).1.is_none(), "a rule without a charge");
}

#[test]
fn a_rejection_has_the_style_of_its_rule() {
    let rule = json!({ "reject": { "status": 503, "body": "busy", "headers": { "x-a": "b" } } });
    let mut proxy = Proxy::new(rule, json!({ "headers": ["x_rate_limit"] }));
    let rejection = rejected(proxy.answered("a", 429, &denied(0)));
    assert_eq!((rejection.status.code(), rejection.body.as_str()), (503, "busy"));
    let lines: Vec<_> = rejection.headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str())).collect();
    let expected = [
        "x-sluicegate-reason: over_limit",
        "content-type: text/plain; charset=utf-8",
        "retry-after: 4",
        "x-ratelimit-limit: 10",
        "x-ratelimit-remaining: 3",
        "x-ratelimit-reset: 7",
        "x-a: b",
    ];
    assert_eq!(lines, expected);

    let html = json!({ "reject": { "body": "<p>", "headers": { "Content-Type": "text/html" } } });
    let mut proxy = Proxy::new(html, json!({}));
    let rejection = rejected(proxy.answered("a", 429, &denied(0)));
    assert_eq!((rejection.status.code(), header(&rejection, "content-type")), (429, Some("text/html")));
    assert_eq!(rejection.headers.iter().filter(|(name, _)| name == "content-type").count(), 1);
}
