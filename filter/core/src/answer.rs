//! What came back from a callout: an answer of the service, or a failure of some kind.

use sluicegate_wire::{CheckAnswer, LeaseAnswer, Problem, decisive};

use crate::{Failure, FailureKind, HeaderValue};

/// How a callout ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome<'a> {
    /// The proxy refused to send it: no such cluster, no healthy host, too many requests in flight.
    Refused,
    /// It was sent, and the answer broke off or was too large for the proxy.
    Lost,
    /// Something answered: the service, something on the way, or the proxy itself.
    Answered(Answer<'a>),
}

/// An HTTP response to a callout.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The status; none when it is missing or no number.
    pub status: Option<u16>,
    /// Whether the service's marker header is there.
    pub marked: bool,
    /// The body.
    pub body: &'a [u8],
}

/// The longest body, in bytes, that can be an answer: far more than a rule with its most limits gets.
pub const MAX_ANSWER_BYTES: usize = 1 << 20;

/// A marked, well-formed 200 or 429 is an answer. All else is a failure: also a 429 made by something on the way.
pub fn read(outcome: Outcome<'_>) -> Result<CheckAnswer, Failure> {
    let (status, body) = marked(outcome)?;
    well_formed(status, body).map_err(malformed)
}

/// A marked, well-formed 200 to a lease of at most `max` tokens is an answer.
pub(crate) fn read_lease(outcome: Outcome<'_>, max: u64) -> Result<LeaseAnswer, Failure> {
    let (status, body) = marked(outcome)?;
    let answer = Some(body).filter(|body| status == 200 && body.len() <= MAX_ANSWER_BYTES);
    let answer = answer.and_then(|body| serde_json::from_slice::<LeaseAnswer>(body).ok());
    let answer = answer.ok_or_else(|| malformed("the body is not an answer"))?;
    if answer.granted > max { Err(malformed("more was granted than asked for")) } else { Ok(answer) }
}

fn malformed(why: &'static str) -> Failure {
    Failure::new(FailureKind::Malformed, why)
}

/// Status and body of a marked 200 or 429.
fn marked(outcome: Outcome<'_>) -> Result<(u16, &[u8]), Failure> {
    let answer = match outcome {
        Outcome::Refused => return Err(Failure::new(FailureKind::DispatchRefused, "the proxy did not send it")),
        Outcome::Lost => return Err(Failure::new(FailureKind::Transport, "the answer broke off")),
        Outcome::Answered(answer) => answer,
    };
    let status = answer.status.ok_or_else(|| Failure::new(FailureKind::Malformed, "no status"))?;
    if !answer.marked {
        // The proxy's own answers for a callout that timed out or that it could not deliver carry no marker.
        let kind = match status {
            504 => FailureKind::Timeout,
            503 => FailureKind::Transport,
            _ => FailureKind::Unmarked,
        };
        return Err(Failure::new(kind, format!("status {status}")));
    }
    match status {
        200 | 429 => Ok((status, answer.body)),
        400..=499 => Err(Failure::new(FailureKind::Config, problem(status, answer.body))),
        500..=599 => Err(Failure::new(FailureKind::Unavailable, problem(status, answer.body))),
        _ => Err(Failure::new(FailureKind::Malformed, format!("status {status}"))),
    }
}

/// Status and body must tell the same story, or a broken service could pass or reject everything.
fn well_formed(status: u16, body: &[u8]) -> Result<CheckAnswer, &'static str> {
    if body.len() > MAX_ANSWER_BYTES {
        return Err("the body is too large");
    }
    let answer: CheckAnswer = serde_json::from_slice(body).map_err(|_| "the body is not an answer")?;
    if answer.allowed != (status == 200) {
        return Err("status and body disagree");
    }
    let denied = decisive(&answer.results).is_some_and(|result| !result.allowed);
    if answer.results.is_empty() || denied == answer.allowed {
        return Err("results and verdict disagree");
    }
    Ok(answer)
}

/// Status and, when the body is a problem details object, its first words.
fn problem(status: u16, body: &[u8]) -> String {
    const MAX_CHARACTERS: usize = 200;
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => {
            let words: String = format!("{} {}", problem.title, problem.detail).chars().take(MAX_CHARACTERS).collect();
            format!("status {status}: {}", HeaderValue::new(words.trim()).as_str())
        }
        Err(_) => format!("status {status}"),
    }
}
