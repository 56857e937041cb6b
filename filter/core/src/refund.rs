//! `charge: {only_status: …}`: what was taken up front is given back when the response has another status.

use std::rc::Rc;

use sluicegate_wire::{Check, Name, RefundRequest};

use crate::{HeaderValue, Measure, Metric, Timeout, callout, config::Service};

/// The statuses of responses that stay charged; one at least.
pub type OnlyStatus = Rc<[u16]>;

/// What was charged for a request whose response is still to come. A client that leaves before stays charged; so does a
/// gRPC call, whatever its own status, when the HTTP status (200 as a rule) is listed.
#[derive(Debug)]
pub struct Refund {
    pub(crate) rule: Name,
    pub(crate) checks: Vec<Check>,
    pub(crate) charge: Option<String>,
    pub(crate) only_status: OnlyStatus,
    pub(crate) timeout: Timeout,
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
    /// What to send now that the response has this status; none when the charge stays. A status that can't be read
    /// leaves it too.
    #[must_use]
    pub fn callout(self, status: Option<u16>, service: &Service) -> Option<RefundCallout> {
        if self.only_status.contains(&status?) {
            return None;
        }
        let request = RefundRequest { checks: self.checks, charge: self.charge };
        Some(RefundCallout {
            headers: callout::headers(service, "/v1/refund", self.timeout),
            body: serde_json::to_vec(&request).unwrap_or_default(),
            timeout: self.timeout,
            measure: Metric::Refunds { rule: self.rule }.once(),
        })
    }
}
