//! Leases: what is served from them, what is asked for and when, and what is given back.

#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod common;

use std::ops::Range;

use common::{Shared, TestRequest, reply};
use serde_json::{Value, json};
use sluicegate_filter_core::{
    Background, Callout, Config, Judgement, LeaseTicket, Measure, Metric, Outcome, Step, Surroundings, TICK_MS, Ticket,
    Verdict, VerdictLabel, Worker,
};
use sluicegate_wire::{LeaseRequest, RefundRequest};

const FOR_MS: u64 = 2_000;

fn leased(policy: &str) -> Value {
    json!({ "policy": policy, "key": ["client_ip"], "lease": { "tokens": 50, "for": "2s" } })
}

fn plain(policy: &str) -> Value {
    json!({ "policy": policy, "key": ["client_ip"] })
}

/// A proxy with one worker, at a time that the test sets.
struct Proxy {
    config: Config,
    worker: Worker,
    shared: Shared,
    now_ms: u64,
}

impl Proxy {
    /// With one rule of these fields.
    fn new(rule: Value) -> Self {
        let mut rule = rule;
        rule["name"] = "r".into();
        Self::with_rules(json!([rule]))
    }

    fn with_rules(rules: Value) -> Self {
        let config = json!({ "service": { "cluster": "c" }, "rules": rules, "breaker": { "failures": 2 } });
        let config = Config::parse(config.to_string().as_bytes()).unwrap();
        Self { worker: Worker::new(&config), config, shared: Shared::default(), now_ms: 1_000_000 }
    }

    /// One with a lease of as many tokens.
    fn holding(rule: Value, tokens: u64) -> Self {
        let mut proxy = Self::new(rule);
        proxy.lease(tokens);
        proxy
    }

    fn begin(&mut self) -> Step {
        let request = TestRequest::new("GET", "/x");
        self.worker.begin(&self.config, &request, Surroundings { now_ms: self.now_ms, shared: &self.shared })
    }

    #[track_caller]
    fn ask(&mut self) -> (Callout, Ticket) {
        match self.begin() {
            Step::Ask(callout, ticket) => (callout, ticket),
            step => panic!("not asked: {step:?}"),
        }
    }

    #[track_caller]
    fn without_callout(&mut self) -> Judgement {
        match self.begin() {
            Step::Done(judgement) => judgement,
            step => panic!("not decided: {step:?}"),
        }
    }

    fn finish(&mut self, (callout, ticket): (Callout, Ticket), status: u16, body: &str) -> Judgement {
        let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
        self.worker.finish(&callout.asked, ticket, reply(status, body.as_bytes()), around)
    }

    /// The callouts of the next ticks.
    fn ticks(&mut self, ticks: Range<u32>) -> Vec<Background> {
        let mut sent = Vec::new();
        for _ in ticks {
            self.now_ms += TICK_MS;
            let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
            sent.extend(self.worker.tick(&self.config, around));
        }
        sent
    }

    /// Makes the subject hot, and has it asked for a lease.
    fn asked_for(&mut self) -> (LeaseRequest, LeaseTicket) {
        for _ in 0..8 {
            let asked = self.ask();
            let body = allowed(&asked.0);
            assert_eq!(self.finish(asked, 200, &body).label, VerdictLabel::Allowed);
        }
        let mut sent = self.ticks(0..1);
        assert_eq!(sent.len(), 1);
        let sent = sent.remove(0);
        assert_eq!(path(&sent), "/v1/lease");
        (serde_json::from_slice(&sent.body).unwrap(), sent.ticket.unwrap())
    }

    fn answer(&mut self, ticket: &LeaseTicket, status: u16, body: &str) -> (Vec<Measure>, Option<String>) {
        let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
        self.worker.leased(ticket, reply(status, body.as_bytes()), around)
    }

    /// The lease for which the subject asks at first: of 8 tokens at most.
    fn lease(&mut self, tokens: u64) {
        let (_, ticket) = self.asked_for();
        let (measures, log) = self.answer(&ticket, 200, &granted(tokens));
        assert_eq!((measures.len(), log), (2, None), "{measures:?}");
    }

    /// How many requests pass without a callout.
    fn served(&mut self) -> usize {
        (0..100).take_while(|_| matches!(self.begin(), Step::Done(_))).count()
    }

    /// The one refund of the next ticks: of so many tokens.
    #[track_caller]
    fn assert_refunds(&mut self, ticks: Range<u32>, tokens: u64) {
        let sent = self.ticks(ticks);
        let refunds: Vec<_> = sent.iter().filter(|sent| path(sent) == "/v1/refund").collect();
        let [refund] = refunds.as_slice() else { panic!("{sent:?}") };
        let request: RefundRequest = serde_json::from_slice(&refund.body).unwrap();
        assert_eq!(request.checks.len(), 1);
        assert_eq!((request.checks[0].cost.tokens(), request.charge), (tokens, None));
        let measure = Measure { metric: Metric::LeaseReturnedTokens, amount: i64::try_from(tokens).unwrap() };
        assert_eq!((refund.measure.as_ref(), refund.ticket.is_none()), (Some(&measure), true));
    }
}

fn path(sent: &Background) -> &str {
    sent.headers.iter().find(|(name, _)| name == ":path").unwrap().1.as_str()
}

fn result(check: usize, policy: &str, reason: &str, remaining: u64) -> Value {
    json!({
        "check": check, "policy": policy, "limit": "l", "allowed": reason == "ok", "reason": reason, "capacity": 100,
        "window_ms": 60_000, "remaining": remaining, "retry_after_ms": if reason == "ok" { 0 } else { 700 },
        "next_ms": 700, "full_ms": 9_000,
    })
}

/// An answer to this question: there was enough for all of it.
fn allowed(callout: &Callout) -> String {
    let checks = callout.asked.question.checks.iter().enumerate();
    let results: Vec<_> = checks.map(|(at, check)| result(at, &check.policy, "ok", 60)).collect();
    json!({ "allowed": true, "results": results }).to_string()
}

fn denied(policy: &str) -> String {
    let results = [result(0, policy, "over_limit", 0)];
    json!({ "allowed": false, "results": results, "deny_cache_ms": 500 }).to_string()
}

fn granted(tokens: u64) -> String {
    let reason = if tokens > 0 { "ok" } else { "over_limit" };
    json!({ "granted": tokens, "result": result(0, "p", reason, 40) }).to_string()
}

fn response_headers(judgement: Judgement) -> Vec<String> {
    let Verdict::Pass { response_headers, refund: None } = judgement.verdict else { panic!("{judgement:?}") };
    response_headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str())).collect()
}

fn counts(judgement: &Judgement, metric: fn(sluicegate_wire::Name) -> Metric) -> usize {
    let metric = metric("r".parse().unwrap());
    judgement.measures.iter().filter(|measure| measure.metric == metric).count()
}

fn hits(judgement: &Judgement) -> usize {
    counts(judgement, |rule| Metric::LeaseHits { rule })
}

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
    let mut proxy = Proxy::with_rules(json!([
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

#[test]
fn a_refused_callout_is_a_failure() {
    let mut proxy = Proxy::new(json!({ "limits": [leased("p")] }));
    let (_, ticket) = proxy.asked_for();
    let around = Surroundings { now_ms: proxy.now_ms, shared: &proxy.shared };
    let (measures, log) = proxy.worker.leased(&ticket, Outcome::Refused, around);
    assert_eq!((measures.len(), log.is_some()), (1, true));
}
