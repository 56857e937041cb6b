//! `charge: {only_status: …}`: what was taken up front is given back when the response has another status.

use std::rc::Rc;

use sluicegate_wire::{Check, CheckAnswer, Cost, RefundRequest};

use crate::{Asked, HeaderValue, Measure, Metric, Rule, Timeout, callout, config::Service};

/// The statuses of responses that stay charged; one at least.
pub type OnlyStatus = Rc<[u16]>;

/// What was charged for a request whose response is still to come. A client that leaves before stays charged; so does a
/// gRPC call, whatever its own status, when the HTTP status (200 as a rule) is listed.
#[derive(Debug)]
pub struct Refund {
    asked: Asked,
    charge: Option<String>,
}

/// One `POST /v1/refund`, ready to send, whose answer nobody waits for.
#[derive(Debug)]
pub struct RefundCallout {
    /// Headers, pseudo-headers first.
    pub headers: Vec<(String, HeaderValue)>,
    /// The body: a [`RefundRequest`] as JSON.
    pub body: Vec<u8>,
    /// How long the proxy waits for the answer.
    pub timeout: Timeout,
    /// What to count.
    pub measure: Measure,
}

impl Refund {
    /// None when none of the rules gives anything back.
    pub(crate) fn new(asked: &Asked, answer: &CheckAnswer) -> Option<Self> {
        let gives = asked.parts().any(|(rule, _)| rule.only_status.is_some());
        gives.then(|| Self { asked: asked.clone(), charge: answer.charge.clone() })
    }

    /// What to send now that the response has this status; none when the charge stays. A status that can't be read
    /// leaves it too.
    #[must_use]
    pub fn callout(self, status: Option<u16>, service: &Service) -> Option<RefundCallout> {
        let status = status?;
        let gives = |rule: &Rule| rule.only_status.as_ref().is_some_and(|only| !only.contains(&status));
        let rule = self.asked.parts().map(|(rule, _)| rule).filter(|rule| gives(rule)).last()?.name.clone();
        // The charge speaks of every check that was asked, so all travel back; a rule that keeps its charge gets 0
        // tokens.
        let checks = self.asked.parts().flat_map(|(rule, checks)| {
            let gives = gives(rule);
            checks.iter().map(move |check| Check { cost: if gives { check.cost } else { Cost::ZERO }, ..check.clone() })
        });
        let request = RefundRequest { checks: checks.collect(), charge: self.charge };
        Some(RefundCallout {
            headers: callout::headers(service, "/v1/refund", self.asked.timeout),
            body: serde_json::to_vec(&request).unwrap_or_default(),
            timeout: self.asked.timeout,
            measure: Metric::Refunds { rule }.once(),
        })
    }
}
