//! A proxy of one worker and the service's answers, for the suites about leases.
#![allow(dead_code, reason = "each suite uses what it needs")]

use std::ops::Range;

use serde_json::{Value, json};
use sluicegate_filter_core::{
    Background, Callout, Config, Judgement, LeaseTicket, Measure, Metric, Step, Surroundings, TICK_MS, Ticket, Verdict,
    VerdictLabel, Worker,
};
use sluicegate_wire::{LeaseRequest, RefundRequest};

use crate::common::{Shared, TestRequest, reply};

pub(crate) const FOR_MS: u64 = 2_000;

pub(crate) fn leased(policy: &str) -> Value {
    json!({ "policy": policy, "key": ["client_ip"], "lease": { "tokens": 50, "for": "2s" } })
}

pub(crate) fn plain(policy: &str) -> Value {
    json!({ "policy": policy, "key": ["client_ip"] })
}

/// A proxy with one worker, at a time that the test sets.
pub(crate) struct Proxy {
    pub(crate) config: Config,
    pub(crate) worker: Worker,
    pub(crate) shared: Shared,
    pub(crate) now_ms: u64,
}

impl Proxy {
    /// With one rule of these fields.
    pub(crate) fn new(rule: Value) -> Self {
        let mut rule = rule;
        rule["name"] = "r".into();
        Self::with_rules(&json!([rule]))
    }

    pub(crate) fn with_rules(rules: &Value) -> Self {
        let config = json!({ "service": { "cluster": "c" }, "rules": rules, "breaker": { "failures": 2 } });
        let config = Config::parse(config.to_string().as_bytes()).unwrap();
        Self { worker: Worker::new(&config), config, shared: Shared::default(), now_ms: 1_000_000 }
    }

    /// One with a lease of as many tokens.
    pub(crate) fn holding(rule: Value, tokens: u64) -> Self {
        let mut proxy = Self::new(rule);
        proxy.lease(tokens);
        proxy
    }

    pub(crate) fn begin(&mut self) -> Step {
        let request = TestRequest::new("GET", "/x");
        self.worker.begin(&self.config, &request, Surroundings { now_ms: self.now_ms, shared: &self.shared })
    }

    #[track_caller]
    pub(crate) fn ask(&mut self) -> (Callout, Ticket) {
        match self.begin() {
            Step::Ask(callout, ticket) => (callout, ticket),
            step => panic!("not asked: {step:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn without_callout(&mut self) -> Judgement {
        match self.begin() {
            Step::Done(judgement) => judgement,
            step => panic!("not decided: {step:?}"),
        }
    }

    pub(crate) fn finish(&mut self, (callout, ticket): (Callout, Ticket), status: u16, body: &str) -> Judgement {
        let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
        self.worker.finish(&callout.asked, ticket, reply(status, body.as_bytes()), around)
    }

    /// The callouts of the next ticks.
    pub(crate) fn ticks(&mut self, ticks: Range<u32>) -> Vec<Background> {
        let mut sent = Vec::new();
        for _ in ticks {
            self.now_ms += TICK_MS;
            let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
            sent.extend(self.worker.tick(&self.config, around));
        }
        sent
    }

    /// Makes the subject hot, and has it asked for a lease.
    pub(crate) fn asked_for(&mut self) -> (LeaseRequest, LeaseTicket) {
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

    pub(crate) fn answer(&mut self, ticket: &LeaseTicket, status: u16, body: &str) -> (Vec<Measure>, Option<String>) {
        let around = Surroundings { now_ms: self.now_ms, shared: &self.shared };
        self.worker.leased(ticket, reply(status, body.as_bytes()), around)
    }

    /// The lease for which the subject asks at first: of 8 tokens at most.
    pub(crate) fn lease(&mut self, tokens: u64) {
        let (_, ticket) = self.asked_for();
        let (measures, log) = self.answer(&ticket, 200, &granted(tokens));
        assert_eq!((measures.len(), log), (2, None), "{measures:?}");
    }

    /// How many requests pass without a callout.
    pub(crate) fn served(&mut self) -> usize {
        (0..100).take_while(|_| matches!(self.begin(), Step::Done(_))).count()
    }

    /// The one refund of the next ticks: of so many tokens.
    #[track_caller]
    pub(crate) fn assert_refunds(&mut self, ticks: Range<u32>, tokens: u64) {
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

pub(crate) fn path(sent: &Background) -> &str {
    sent.headers.iter().find(|(name, _)| name == ":path").unwrap().1.as_str()
}

pub(crate) fn result(check: usize, policy: &str, reason: &str, remaining: u64) -> Value {
    json!({
        "check": check, "policy": policy, "limit": "l", "allowed": reason == "ok", "reason": reason, "capacity": 100,
        "window_ms": 60_000, "remaining": remaining, "retry_after_ms": if reason == "ok" { 0 } else { 700 },
        "next_ms": 700, "full_ms": 9_000,
    })
}

/// An answer to this question: there was enough for all of it.
pub(crate) fn allowed(callout: &Callout) -> String {
    let checks = callout.asked.question.checks.iter().enumerate();
    let results: Vec<_> = checks.map(|(at, check)| result(at, &check.policy, "ok", 60)).collect();
    json!({ "allowed": true, "results": results }).to_string()
}

pub(crate) fn denied(policy: &str) -> String {
    let results = [result(0, policy, "over_limit", 0)];
    json!({ "allowed": false, "results": results, "deny_cache_ms": 500 }).to_string()
}

pub(crate) fn granted(tokens: u64) -> String {
    let reason = if tokens > 0 { "ok" } else { "over_limit" };
    json!({ "granted": tokens, "result": result(0, "p", reason, 40) }).to_string()
}

pub(crate) fn response_headers(judgement: Judgement) -> Vec<String> {
    let Verdict::Pass { response_headers, refund: None } = judgement.verdict else { panic!("{judgement:?}") };
    response_headers.iter().map(|(name, value)| format!("{name}: {}", value.as_str())).collect()
}

pub(crate) fn counts(judgement: &Judgement, metric: fn(sluicegate_wire::Name) -> Metric) -> usize {
    let metric = metric("r".parse().unwrap());
    judgement.measures.iter().filter(|measure| measure.metric == metric).count()
}

pub(crate) fn hits(judgement: &Judgement) -> usize {
    counts(judgement, |rule| Metric::LeaseHits { rule })
}
