//! An answer comes back, or doesn't: what becomes of the request.

use sluicegate_wire::{CheckAnswer, header};

use crate::{Asked, Failure, HeaderValue, Outcome, Rejection, answer, failure};

/// What becomes of a request.
#[derive(Debug)]
pub enum Verdict {
    /// Pass it to the upstream.
    Pass {
        /// Headers to add to the response, whoever makes it.
        response_headers: Vec<(&'static str, HeaderValue)>,
    },
    /// Answer it here.
    Reject(Rejection),
}

/// A verdict, and the failure behind it when the service gave none.
#[derive(Debug)]
pub struct Judgement {
    /// What becomes of the request.
    pub verdict: Verdict,
    /// Why the verdict is a failure verdict; none when the service answered.
    pub failure: Option<Failure>,
}

/// Judges how a callout ended.
#[must_use]
pub fn judge(asked: &Asked, outcome: Outcome<'_>) -> Judgement {
    match answer::read(outcome) {
        Ok(answer) if answer.allowed => Judgement { verdict: pass(&answer), failure: None },
        Ok(answer) => Judgement { verdict: Verdict::Reject(Rejection::denied(&answer, asked.grpc)), failure: None },
        Err(failure) => Judgement { verdict: failure::verdict(asked), failure: Some(failure) },
    }
}

fn pass(answer: &CheckAnswer) -> Verdict {
    Verdict::Pass { response_headers: rate_limit_headers(answer) }
}

/// The state of the limits, on allowed and denied responses alike.
pub(crate) fn rate_limit_headers(answer: &CheckAnswer) -> Vec<(&'static str, HeaderValue)> {
    [
        (header::RATE_LIMIT, header::rate_limit(&answer.results)),
        (header::RATE_LIMIT_POLICY, header::rate_limit_policy(&answer.results)),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, HeaderValue::new(&value?))))
    .collect()
}
