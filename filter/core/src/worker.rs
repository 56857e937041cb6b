//! What one worker remembers from request to request under one configuration.

use crate::{
    Asked, Callout, Config, Decision, Failure, FailureKind, FailureLog, Judgement, Measure, Metric, Outcome, Request,
    SharedData,
    breaker::{Breaker, Permit},
    decide,
    deny_cache::DenyCache,
    judge,
    judge::missing_key,
    read,
};

/// The memory of a worker: its breaker, the denials of a moment ago, and what it logged.
#[derive(Debug)]
pub struct Worker {
    breaker: Breaker,
    deny_cache: DenyCache,
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
            failures: FailureLog::default(),
        }
    }

    /// A request comes in.
    pub fn begin(&mut self, config: &Config, request: &dyn Request, around: Surroundings<'_>) -> Step {
        let callout = match decide(config, request) {
            Decision::Pass { mut measures } => {
                measures.push(Metric::Unmatched.once());
                return Step::Pass(measures);
            }
            Decision::Deny { rule, grpc } => return Step::Done(missing_key(&rule, grpc)),
            Decision::Ask(callout) => callout,
        };
        if let Some(answer) = self.deny_cache.get(&callout.asked.question, around.now_ms) {
            let mut judgement = judge(&callout.asked, Ok(&answer), around);
            judgement.measures.push(Metric::DenyCacheHits { rule: judgement.rule.clone() }.once());
            return Step::Done(judgement);
        }
        match self.breaker.admit(around.now_ms, callout.timeout) {
            Some(permit) => Step::Ask(callout, Ticket { permit, since_ms: around.now_ms }),
            None => {
                let failure = Failure::new(FailureKind::BreakerOpen, "too many failures a moment ago");
                Step::Done(self.fail(&callout.asked, failure, around))
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
        judgement
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

    fn fail(&mut self, asked: &Asked, failure: Failure, around: Surroundings<'_>) -> Judgement {
        let log = self.failures.note(around.now_ms, &asked.last().name, &failure);
        Judgement { log, ..judge(asked, Err(failure), around) }
    }
}
