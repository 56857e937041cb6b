//! A stand-in for the service that gives the answers no real service gives.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use anyhow::Result;
use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderName, HeaderValue, Response, StatusCode, Uri},
};
use serde_json::json;
use sluicegate_wire::header;
use tokio::net::TcpListener;

/// An HTTP/1.1 and HTTP/2 server that gives every request the same [`Reply`], but for paths with their own. It lives as long as the runtime it was
/// started on.
#[derive(Debug)]
pub struct StandIn {
    port: u16,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    reply: Reply,
    by_path: HashMap<String, Reply>,
    asked: Vec<String>,
}

/// An answer of the stand-in.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(&'static str, Vec<u8>)>,
    body: Vec<u8>,
}

impl Reply {
    /// What the service says to a check that passes.
    #[must_use]
    pub fn allowed() -> Self {
        let result = json!({
            "check": 0, "policy": "api", "limit": "minute", "allowed": true, "reason": "ok", "capacity": 10,
            "window_ms": 60_000, "remaining": 9, "retry_after_ms": 0, "next_ms": 6_000, "full_ms": 6_000,
        });
        let body = json!({ "allowed": true, "results": [result] }).to_string();
        Self::answer(200, body).with_header("content-type", "application/json").with_header(header::MARKER, "0.1.0")
    }

    /// A status and a body without any header.
    #[must_use]
    pub fn answer(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }
    }

    /// The same answer with one more header, or another value for one that it has; any bytes that HTTP can carry.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<Vec<u8>>) -> Self {
        self.headers.retain(|(present, _)| *present != name);
        self.headers.push((name, value.into()));
        self
    }

    /// The same answer with the marker that the filter looks for.
    #[must_use]
    pub fn marked(self) -> Self {
        self.with_header(header::MARKER, "0.1.0")
    }
}

impl StandIn {
    /// A stand-in on a free port that gives `reply`.
    ///
    /// # Errors
    /// When it can't listen.
    pub async fn start(reply: Reply) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Mutex::new(Shared { reply, by_path: HashMap::new(), asked: Vec::new() }));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { port, shared })
    }

    /// The reply from now on.
    ///
    /// # Panics
    /// Never: the lock is held for a move only.
    pub fn reply_with(&self, reply: Reply) {
        self.shared.lock().unwrap().reply = reply;
    }

    /// The reply at a path from now on.
    ///
    /// # Panics
    /// Never: the lock is held for a move only.
    pub fn reply_at(&self, path: &str, reply: Reply) {
        self.shared.lock().unwrap().by_path.insert(path.to_owned(), reply);
    }

    /// The paths of the requests since the last call, in order.
    ///
    /// # Panics
    /// Never: the lock is held for a move only.
    #[must_use]
    pub fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.lock().unwrap().asked)
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, uri: Uri) -> Response<Body> {
    let Reply { status, headers, body } = {
        let mut shared = shared.lock().unwrap();
        shared.asked.push(uri.path().to_owned());
        shared.by_path.get(uri.path()).unwrap_or(&shared.reply).clone()
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    for (name, value) in headers {
        response.headers_mut().append(HeaderName::from_static(name), HeaderValue::from_bytes(&value).unwrap());
    }
    response
}
