//! The application behind Envoy.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::{
    Router,
    body::{Bytes, to_bytes},
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
    /// The body.
    pub body: Bytes,
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
        Self::run(port, Router::new()).await
    }

    /// The same on a free port, but for the paths of `app`, which are neither noted nor answered alike.
    ///
    /// # Errors
    /// As [`Upstream::start`].
    pub async fn start_with(app: Router) -> Result<Self> {
        Self::run(Port::lease()?, app).await
    }

    async fn run(port: Port, app: Router) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port.number())).await?;
        let shared = Arc::new(Mutex::new(Shared { status: StatusCode::OK, seen: Vec::new() }));
        let app = app.fallback_service(Router::new().fallback(answer).with_state(Arc::clone(&shared)));
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
    let (head, body) = request.into_parts();
    // A request that broke off was not seen.
    let Ok(body) = to_bytes(body, usize::MAX).await else { return (StatusCode::BAD_REQUEST, "") };
    let seen = Seen { method: head.method, path, headers: head.headers, body };
    let mut shared = shared.lock().unwrap();
    shared.seen.push(seen);
    (shared.status, "hello from the upstream\n")
}
