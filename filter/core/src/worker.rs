//! What one worker remembers from request to request under one configuration.

use sluicegate_wire::CheckAnswer;

use crate::{
    Asked, Background, Callout, Config, Decision, Failure, FailureKind, FailureLog, Judgement, LeaseTicket, Measure,
    Metric, Outcome, Request, SharedData, Verdict,
    breaker::{Breaker, Permit},
    decide,
    deny_cache::DenyCache,
    judge,
    judge::missing_key,
    lease::Leases,
    read,
};

/// The memory of a worker: its breaker, the denials of a moment ago, what it does about leases, and what it logged.
#[derive(Debug)]
pub struct Worker {
    breaker: Breaker,
    deny_cache: DenyCache,
    leases: Leases,
    failures: FailureLog,
}

/// What to do with a request.
#[derive(Debug)]
pub enum Step {
    /// Pass it: no limit is for it.
    Pass(Vec<Measure>),
    /// Hold it and make this callout; then [`Worker::finish`], or [`Worker::abandon`] when the request is gone.
    Ask(Callout, Ticket),
    /// This is decided already.
    Done(Judgement),
}

/// A callout under way.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    permit: Permit,
    since_ms: u64,
}

/// What there is besides the request: the time in ms, by the same clock in every call, and what the workers share.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The time.
    pub now_ms: u64,
    /// The shared data.
    pub shared: &'a dyn SharedData,
}

impl Worker {
    /// A worker that has seen nothing yet.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self {
            breaker: Breaker::new(config.breaker),
            deny_cache: DenyCache::new(config.deny_cache),
            leases: Leases::default(),
            failures: FailureLog::default(),
        }
    }

    /// A request comes in.
    pub fn begin(&mut self, config: &Config, request: &dyn Request, around: Surroundings<'_>) -> Step {
        let mut asked = match decide(config, request) {
            Decision::Pass { mut measures } => {
                measures.push(Metric::Unmatched.once());
                return Step::Pass(measures);
            }
            Decision::Deny { rule, grpc } => return Step::Done(missing_key(&rule, grpc)),
            Decision::Ask(asked) => asked,
        };
        // First, and also while the breaker is open: these tokens are paid for.
        self.leases.serve(&mut asked, !self.breaker.is_open(), around);
        if asked.question.checks.is_empty() {
            let answer = CheckAnswer { allowed: true, results: Vec::new(), charge: None, deny_cache_ms: None };
            return Step::Done(judge(&asked, Ok(&answer), around));
        }
        if let Some(answer) = self.deny_cache.get(&asked.question, around.now_ms) {
            let mut judgement = judge(&asked, Ok(&answer), around);
            judgement.measures.push(Metric::DenyCacheHits { rule: judgement.rule.clone() }.once());
            return Step::Done(self.settled(&asked, judgement, around));
        }
        match self.breaker.admit(around.now_ms, asked.timeout) {
            Some(permit) => {
                let callout = Callout::build(&config.service, asked, request);
                Step::Ask(callout, Ticket { permit, since_ms: around.now_ms })
            }
            None => {
                let failure = Failure::new(FailureKind::BreakerOpen, "too many failures a moment ago");
                let judgement = self.fail(&asked, failure, around);
                Step::Done(self.settled(&asked, judgement, around))
            }
        }
    }

    /// A callout ended.
    pub fn finish(
        &mut self,
        asked: &Asked,
        ticket: Ticket,
        outcome: Outcome<'_>,
        around: Surroundings<'_>,
    ) -> Judgement {
        let was_open = self.breaker.is_open();
        let answer = read(outcome);
        self.breaker.settle(ticket.permit, answer.as_ref().err().map(|failure| failure.kind), around.now_ms);
        let mut judgement = match answer {
            Ok(answer) => {
                self.deny_cache.put(&asked.question, &answer, around.now_ms);
                judge(asked, Ok(&answer), around)
            }
            Err(failure) => self.fail(asked, failure, around),
        };
        if !matches!(outcome, Outcome::Refused) {
            let ms = i64::try_from(around.now_ms.saturating_sub(ticket.since_ms)).unwrap_or(i64::MAX);
            judgement.measures.push(Measure { metric: Metric::CalloutMs, amount: ms });
        }
        match (was_open, self.breaker.is_open()) {
            (false, true) => judgement.measures.push(Metric::BreakerOpen.once()),
            (true, false) => judgement.measures.push(Measure { metric: Metric::BreakerOpen, amount: -1 }),
            (false, false) | (true, true) => {}
        }
        self.settled(asked, judgement, around)
    }

    /// Every [`TICK_MS`](crate::TICK_MS), where the configuration has leases: what to send behind the requests.
    pub fn tick(&mut self, config: &Config, around: Surroundings<'_>) -> Vec<Background> {
        self.leases.tick(&config.service, around)
    }

    /// A lease was answered, or wasn't: what to count, and a line for the log.
    pub fn leased(
        &mut self,
        ticket: &LeaseTicket,
        outcome: Outcome<'_>,
        around: Surroundings<'_>,
    ) -> (Vec<Measure>, Option<String>) {
        let (measures, failure) = self.leases.answered(ticket, outcome, around);
        let log = failure.and_then(|failure| self.failures.note_lease(around.now_ms, ticket.rule(), &failure));
        (measures, log)
    }

    /// The request of a callout is gone: its answer will not be seen.
    pub fn abandon(&mut self, ticket: Ticket, now_ms: u64) {
        self.breaker.abandon(ticket.permit, now_ms);
    }

    /// What to count when this worker ends.
    #[must_use]
    pub fn end(&self) -> Option<Measure> {
        self.breaker.is_open().then_some(Measure { metric: Metric::BreakerOpen, amount: -1 })
    }

    /// What a rejected request took from leases is there for the next one.
    fn settled(&mut self, asked: &Asked, judgement: Judgement, around: Surroundings<'_>) -> Judgement {
        if matches!(judgement.verdict, Verdict::Reject(_)) {
            self.leases.give_back(&asked.leased, around);
        }
        judgement
    }

    fn fail(&mut self, asked: &Asked, failure: Failure, around: Surroundings<'_>) -> Judgement {
        let log = self.failures.note(around.now_ms, &asked.last().name, &failure);
        Judgement { log, ..judge(asked, Err(failure), around) }
    }
}
