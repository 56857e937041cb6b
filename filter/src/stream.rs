//! The HTTP context: one request.

use std::rc::Rc;

use proxy_wasm::{
    traits::{Context, HttpContext},
    types::{Action, LogLevel},
};
use sluicegate_filter_core::{
    Answer, Asked, Callout, Decision, HeaderValue, Headers, MAX_ANSWER_BYTES, Outcome, Request, Verdict, decide, judge,
    own_headers,
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
    Held { token: u32, asked: Asked },
    /// Passed, with headers for the response.
    Passed { response_headers: Vec<(&'static str, HeaderValue)> },
    /// Answered here.
    Rejected,
}

impl Stream {
    pub(crate) const fn new(plugin: Option<Rc<Plugin>>) -> Self {
        Self { plugin, state: State::Open }
    }

    fn ask(&mut self, plugin: &Plugin, callout: Callout) -> Action {
        match host::call(&plugin.config.service.cluster, &callout) {
            Some(token) => {
                self.state = State::Held { token, asked: callout.asked };
                Action::Pause
            }
            None => self.judge(plugin, &callout.asked, Outcome::Refused),
        }
    }

    fn judge(&mut self, plugin: &Plugin, asked: &Asked, outcome: Outcome<'_>) -> Action {
        let judgement = judge(asked, outcome);
        if let Some(failure) = &judgement.failure {
            plugin.failed(asked, failure);
        }
        match judgement.verdict {
            Verdict::Pass { response_headers } => {
                self.state = State::Passed { response_headers };
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
        match decide(&plugin.config, &request) {
            Decision::Pass => Action::Continue,
            Decision::Ask(callout) => self.ask(&plugin, callout),
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
        if let State::Passed { response_headers } = &self.state {
            for (name, value) in response_headers {
                host::add_response_header(name, value.as_str());
            }
        }
        Action::Continue
    }
}

impl Context for Stream {
    fn on_http_call_response(&mut self, token: u32, headers: usize, body_size: usize, _trailers: usize) {
        let Some(plugin) = self.plugin.clone() else { return };
        let asked = match &self.state {
            State::Held { token: awaited, asked } if *awaited == token => asked.clone(),
            _ => return,
        };
        // Without headers there is no map to read: asking for it would be an error.
        let action = if headers == 0 {
            self.judge(&plugin, &asked, Outcome::Lost)
        } else {
            let headers = host::callout_headers();
            // One byte more than can be an answer, so that a longer one is seen to be too long.
            let body = host::callout_body(body_size.min(MAX_ANSWER_BYTES.saturating_add(1)));
            self.judge(&plugin, &asked, Outcome::Answered(answer(&headers, &body)))
        };
        if action == Action::Continue {
            host::resume_request();
        }
    }
}

fn answer<'a>(headers: &Headers, body: &'a [u8]) -> Answer<'a> {
    let status = headers.get(":status").single().and_then(|status| std::str::from_utf8(status).ok());
    Answer {
        status: status.and_then(|status| status.parse().ok()),
        marked: headers.names().any(|name| name.eq_ignore_ascii_case(header::MARKER.as_bytes())),
        body,
    }
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
