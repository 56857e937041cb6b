//! The HTTP context: one request.

use std::rc::Rc;

use proxy_wasm::{
    traits::{Context, HttpContext},
    types::{Action, LogLevel},
};
use sluicegate_filter_core::{
    Answer, Asked, Callout, HeaderLine, Headers, Judgement, MAX_ANSWER_BYTES, Outcome, Refund, RefundCallout, Request,
    Step, Ticket, Verdict, own_headers,
};
use sluicegate_wire::header;

use crate::{host, plugin::Plugin};

/// One request and how far it has come.
pub(crate) struct Stream {
    plugin: Option<Rc<Plugin>>,
    state: State,
}

enum State {
    /// Not held: not seen yet, not limited, or passed.
    Open,
    /// Held until the callout with this token ends.
    Held { token: u32, asked: Asked, ticket: Ticket },
    /// Passed, with headers for the response, and what its status may give back.
    Passed { response_headers: Vec<HeaderLine>, refund: Option<Refund> },
    /// Answered here.
    Rejected,
}

impl Stream {
    pub(crate) const fn new(plugin: Option<Rc<Plugin>>) -> Self {
        Self { plugin, state: State::Open }
    }

    fn ask(&mut self, plugin: &Plugin, callout: Callout, ticket: Ticket) -> Action {
        let Callout { headers, body, timeout, asked } = callout;
        match host::call(&plugin.config.service.cluster, &headers, &body, timeout) {
            Some(token) => {
                self.state = State::Held { token, asked, ticket };
                Action::Pause
            }
            None => self.carry_out(plugin, plugin.finish(&asked, ticket, Outcome::Refused)),
        }
    }

    fn carry_out(&mut self, plugin: &Plugin, judgement: Judgement) -> Action {
        let Judgement { verdict, label, rule, measures, log, failure: _ } = judgement;
        if let Some(line) = log {
            host::log(LogLevel::Warn, &line);
        }
        plugin.measure(measures);
        host::set_property("sluicegate_verdict", label.as_str());
        host::set_property("sluicegate_rule", rule.as_str());
        match verdict {
            Verdict::Pass { response_headers, refund } => {
                self.state = State::Passed { response_headers, refund };
                Action::Continue
            }
            Verdict::Reject(rejection) => {
                self.state = State::Rejected;
                if !host::reject(&rejection) {
                    host::log(LogLevel::Error, "the proxy took no response; the request is reset");
                    host::reset_request();
                }
                Action::Pause
            }
        }
    }

    /// While a request is held nothing of it moves on, also where the proxy shows bodies in the meantime.
    fn hold(&self) -> Action {
        match self.state {
            State::Held { .. } | State::Rejected => Action::Pause,
            State::Open | State::Passed { .. } => Action::Continue,
        }
    }
}

impl HttpContext for Stream {
    fn on_http_request_headers(&mut self, _count: usize, _end_of_stream: bool) -> Action {
        let Some(plugin) = self.plugin.clone() else {
            return Action::Continue;
        };
        let request = ProxyRequest { headers: host::request_headers() };
        for name in own_headers(&request.headers) {
            host::remove_request_header(name);
        }
        match plugin.begin(&request) {
            Step::Pass(measures) => {
                plugin.measure(measures);
                Action::Continue
            }
            Step::Ask(callout, ticket) => self.ask(&plugin, callout, ticket),
            Step::Done(judgement) => self.carry_out(&plugin, judgement),
        }
    }

    fn on_http_request_body(&mut self, _size: usize, _end_of_stream: bool) -> Action {
        self.hold()
    }

    fn on_http_request_trailers(&mut self, _count: usize) -> Action {
        self.hold()
    }

    /// The request's headers are gone by now; what the response needs was kept.
    fn on_http_response_headers(&mut self, _count: usize, _end_of_stream: bool) -> Action {
        let (Some(plugin), State::Passed { response_headers, refund }) = (&self.plugin, &mut self.state) else {
            return Action::Continue;
        };
        let refund =
            refund.take().and_then(|refund| refund.callout(status(&host::response_headers()), &plugin.config.service));
        if let Some(RefundCallout { headers, body, timeout, measure }) = refund {
            // Nobody waits for the answer: most responses are through before it comes.
            if host::call(&plugin.config.service.cluster, &headers, &body, timeout).is_some() {
                plugin.measure([measure]);
            }
        }
        for (name, value) in response_headers {
            host::add_response_header(name, value.as_str());
        }
        Action::Continue
    }
}

impl Context for Stream {
    fn on_http_call_response(&mut self, token: u32, headers: usize, body_size: usize, _trailers: usize) {
        let Some(plugin) = self.plugin.clone() else { return };
        // Also what a refund is answered with, where the request is still there.
        if !matches!(&self.state, State::Held { token: awaited, .. } if *awaited == token) {
            return;
        }
        let State::Held { asked, ticket, .. } = std::mem::replace(&mut self.state, State::Open) else { return };
        let judgement = outcome(headers, body_size, |outcome| plugin.finish(&asked, ticket, outcome));
        if self.carry_out(&plugin, judgement) == Action::Continue {
            host::resume_request();
        }
    }

    /// The request ended. While it is held that means that its client left.
    fn on_done(&mut self) -> bool {
        if let (Some(plugin), State::Held { ticket, .. }) = (&self.plugin, &self.state) {
            plugin.abandon(*ticket);
        }
        true
    }
}

/// Hands over how a callout ended. Valid in its callback.
pub(crate) fn outcome<T>(headers: usize, body_size: usize, take: impl FnOnce(Outcome<'_>) -> T) -> T {
    // Without headers there is no map to read: asking for it would be an error.
    if headers == 0 {
        return take(Outcome::Lost);
    }
    let headers = host::callout_headers();
    // One byte more than can be an answer, so that a longer one is seen to be too long.
    let body = host::callout_body(body_size.min(MAX_ANSWER_BYTES.saturating_add(1)));
    take(Outcome::Answered(answer(&headers, &body)))
}

fn answer<'a>(headers: &Headers, body: &'a [u8]) -> Answer<'a> {
    Answer {
        status: status(headers),
        marked: headers.names().any(|name| name.eq_ignore_ascii_case(header::MARKER.as_bytes())),
        body,
    }
}

fn status(headers: &Headers) -> Option<u16> {
    std::str::from_utf8(headers.get(":status").single()?).ok()?.parse().ok()
}

/// The request in the proxy, as rules see it.
struct ProxyRequest {
    headers: Headers,
}

impl Request for ProxyRequest {
    fn headers(&self) -> &Headers {
        &self.headers
    }

    fn property(&self, path: &[&str]) -> Option<Vec<u8>> {
        host::property(path)
    }
}
