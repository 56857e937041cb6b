//! Whether the process lives, and whether it wants requests.

use std::sync::Arc;

use axum::extract::State;

use super::{App, openapi::RefusedLook, respond::Refusal};
use crate::serve::Phase;

/// `GET /healthz`: 200 as long as the process answers at all.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = OK, body = String), RefusedLook))]
pub(super) async fn healthz() -> &'static str {
    "ok\n"
}

/// `GET /readyz`: 200 when checks are decided, else 503 with the reason.
#[utoipa::path(get, path = "/readyz", tag = "health", responses((status = OK, body = String), RefusedLook))]
pub(super) async fn readyz(State(app): State<Arc<App>>) -> Result<&'static str, Refusal> {
    if *app.phase.borrow() != Phase::Serving {
        return Err(Refusal::Stopping);
    }
    app.limiter.ready().map_err(Refusal::NotReady)?;
    Ok("ready\n")
}
