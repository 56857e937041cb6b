//! The application behind Envoy.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode},
};
use tokio::net::TcpListener;

use crate::Port;

/// An HTTP server that notes what it saw and answers every request alike. It lives as long as the runtime it was
/// started on.
#[derive(Debug)]
pub struct Upstream {
    port: Port,
    shared: Arc<Mutex<Shared>>,
}

/// One request that reached the upstream.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// The headers.
    pub headers: HeaderMap,
}

#[derive(Debug)]
struct Shared {
    status: StatusCode,
    seen: Vec<Seen>,
}

impl Upstream {
    /// An upstream on a free port that answers 200.
    ///
    /// # Errors
    /// When it can't listen.
    pub async fn start() -> Result<Self> {
        Self::start_on(Port::lease()?).await
    }

    /// The same on a port of the caller's.
    ///
    /// # Errors
    /// As [`Upstream::start`].
    pub async fn start_on(port: Port) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.number())).await?;
        let shared = Arc::new(Mutex::new(Shared { status: StatusCode::OK, seen: Vec::new() }));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { port, shared })
    }

    /// The status of every answer from now on.
    ///
    /// # Panics
    /// When `status` is not an HTTP status.
    pub fn answer_with(&self, status: u16) {
        self.lock().status = StatusCode::from_u16(status).unwrap();
    }

    /// The requests seen since the last call, in order.
    #[must_use]
    pub fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.lock().seen)
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().unwrap()
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> (StatusCode, &'static str) {
    let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
    let seen = Seen { method: request.method().clone(), path, headers: request.headers().clone() };
    let mut shared = shared.lock().unwrap();
    shared.seen.push(seen);
    (shared.status, "hello from the upstream\n")
}
