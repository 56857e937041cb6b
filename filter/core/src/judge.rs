//! An answer comes back, or doesn't: what becomes of the request.

use sluicegate_wire::{CheckAnswer, Name, Reason, decisive, header, shadow_denial};

use crate::{
    Asked, Failure, HeaderLine, HeaderValue, Measure, Metric, Refund, Rejection, Rule, VerdictLabel, failure,
    worker::Surroundings,
};

/// What becomes of a request.
#[derive(Debug)]
pub enum Verdict {
    /// Pass it to the upstream.
    Pass {
        /// Headers to add to the response, whoever makes it.
        response_headers: Vec<HeaderLine>,
        /// What the response's status may give back.
        refund: Option<Refund>,
    },
    /// Answer it here.
    Reject(Rejection),
}

/// A verdict, and what to tell about it.
#[derive(Debug)]
pub struct Judgement {
    /// What becomes of the request.
    pub verdict: Verdict,
    /// The verdict as one word, for counting and for the access log.
    pub label: VerdictLabel,
    /// The rule that decided, of those that were joined; the last of them when all agree.
    pub rule: Name,
    /// Why the verdict is a failure verdict; none when the service answered.
    pub failure: Option<Failure>,
    /// What to count.
    pub measures: Vec<Measure>,
    /// A line for the proxy's log.
    pub log: Option<String>,
}

/// Judges an answer of the service, or a [`Failure`] to get one. [`Worker`](crate::Worker) does this for each request.
#[must_use]
pub fn judge(asked: &Asked, answer: Result<&CheckAnswer, Failure>, around: Surroundings<'_>) -> Judgement {
    let mut judgement = match answer {
        Ok(answer) => answered(asked, answer),
        Err(failure) => failure::judge(asked, failure, around),
    };
    judgement.measures.extend_from_slice(&asked.measures);
    judgement.counted()
}

/// A request without the value that a limit of this rule demands.
pub(crate) fn missing_key(rule: &Rule, grpc: bool) -> Judgement {
    let judgement = Judgement {
        verdict: Verdict::Reject(Rejection::missing_key(&rule.style, grpc)),
        label: VerdictLabel::MissingKey,
        rule: rule.name.clone(),
        failure: None,
        measures: Vec::new(),
        log: None,
    };
    judgement.counted()
}

impl Judgement {
    fn counted(mut self) -> Self {
        self.measures.push(Metric::Requests { rule: self.rule.clone(), verdict: self.label }.once());
        self
    }
}

fn answered(asked: &Asked, answer: &CheckAnswer) -> Judgement {
    let mut measures = Vec::new();
    let mut marks = Vec::new();
    if let Some(denial) = shadow_denial(&answer.results) {
        let verdict = VerdictLabel::from(denial.reason);
        marks.push((header::SHADOW.into(), HeaderValue::new(verdict.reason())));
        measures.push(Metric::Shadow { rule: asked.rule_of(denial.check).name.clone(), verdict }.once());
    }
    if answer.allowed {
        let rule = asked.last();
        let leased = asked.leased.iter().map(|leased| &leased.result);
        let results: Vec<_> = leased.chain(&answer.results).cloned().collect();
        marks.extend(rule.style.limits.lines(&results));
        let verdict = Verdict::Pass { response_headers: marks, refund: Refund::new(asked, answer) };
        return Judgement {
            verdict,
            label: VerdictLabel::Allowed,
            rule: rule.name.clone(),
            failure: None,
            measures,
            log: None,
        };
    }
    let denial = decisive(&answer.results);
    let rule = denial.map_or(asked.last(), |result| asked.rule_of(result.check));
    let label = VerdictLabel::from(denial.map_or(Reason::OverLimit, |result| result.reason));
    let rejection = Rejection::denied(answer, label, &rule.style, asked.grpc).with(marks);
    Judgement {
        verdict: Verdict::Reject(rejection),
        label,
        rule: rule.name.clone(),
        failure: None,
        measures,
        log: None,
    }
}
