//! What leases send behind the requests.

use super::LeaseTicket;
use crate::{HeaderValue, Measure, Timeout, callout, config::Service};

/// A callout that no request waits for.
#[derive(Debug)]
pub struct Background {
    /// Headers, pseudo-headers first.
    pub headers: Vec<(String, HeaderValue)>,
    /// The body, as JSON.
    pub body: Vec<u8>,
    /// How long the proxy waits for the answer.
    pub timeout: Timeout,
    /// Who its answer is for; nobody waits for that of a refund.
    pub ticket: Option<LeaseTicket>,
    /// What to count once it is sent.
    pub measure: Option<Measure>,
}

impl Background {
    /// A [`LeaseRequest`](sluicegate_wire::LeaseRequest).
    pub(super) fn lease(service: &Service, ticket: LeaseTicket, timeout: Timeout) -> Self {
        let more = format!(",\"max\":{},\"for_ms\":{}}}", ticket.max, ticket.for_ms);
        let body = [b"{", ticket.id.as_slice(), more.as_bytes()].concat();
        Self::new(service, "/v1/lease", body, timeout, Some(ticket), None)
    }

    /// A [`RefundRequest`](sluicegate_wire::RefundRequest).
    pub(super) fn refund(service: &Service, id: &[u8], tokens: u64, timeout: Timeout, measure: Measure) -> Self {
        let body = [b"{\"checks\":[{", id, format!(",\"cost\":{tokens}}}]}}").as_bytes()].concat();
        Self::new(service, "/v1/refund", body, timeout, None, Some(measure))
    }

    fn new(
        service: &Service,
        path: &str,
        body: Vec<u8>,
        timeout: Timeout,
        ticket: Option<LeaseTicket>,
        measure: Option<Measure>,
    ) -> Self {
        Self { headers: callout::headers(service, path, timeout), body, timeout, ticket, measure }
    }
}
