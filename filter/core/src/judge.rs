//! An answer comes back, or doesn't: what becomes of the request.

use sluicegate_wire::{CheckAnswer, Reason, decisive, header, shadow_denial};

use crate::{
    Asked, Failure, HeaderLine, HeaderValue, Measure, Metric, Refund, Rejection, VerdictLabel, failure,
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
    judgement.measures.push(Metric::Requests { rule: asked.rule.clone(), verdict: judgement.label }.once());
    judgement
}

fn answered(asked: &Asked, answer: &CheckAnswer) -> Judgement {
    let mut measures = Vec::new();
    let mut marks = Vec::new();
    if let Some(reason) = shadow_denial(&answer.results) {
        let verdict = VerdictLabel::from(reason);
        marks.push((header::SHADOW.into(), HeaderValue::new(verdict.reason())));
        measures.push(Metric::Shadow { rule: asked.rule.clone(), verdict }.once());
    }
    let (verdict, label) = if answer.allowed {
        marks.extend(asked.style.limits.lines(&answer.results));
        (Verdict::Pass { response_headers: marks, refund: refund(asked, answer) }, VerdictLabel::Allowed)
    } else {
        let reason = decisive(&answer.results).map_or(Reason::OverLimit, |result| result.reason);
        let label = VerdictLabel::from(reason);
        (Verdict::Reject(Rejection::denied(answer, label, asked).with(marks)), label)
    };
    Judgement { verdict, label, failure: None, measures, log: None }
}

fn refund(asked: &Asked, answer: &CheckAnswer) -> Option<Refund> {
    let only_status = asked.only_status.clone()?;
    let (checks, charge) = (asked.question.checks.clone(), answer.charge.clone());
    Some(Refund { rule: asked.rule.clone(), checks, charge, only_status, timeout: asked.timeout })
}
