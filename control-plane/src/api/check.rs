//! `POST /v1/check`: from bytes to a decision.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::Response,
};
use sluicegate_wire::{CheckAnswer, CheckRequest};

use super::{
    App, body,
    respond::{self, Refusal},
};

/// Answers 200 when all checks are allowed and 429 when one is denied. No checks at all is 200 with no results: who
/// asks about nothing is denied nothing. Any content type is taken for JSON.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let (question, deadline) = body::question(&app, request, |check: &CheckRequest| check.checks.len()).await?;
    if question.checks.is_empty() {
        let nothing = CheckAnswer { allowed: true, results: Vec::new(), charge: None, deny_cache_ms: None };
        return Ok(respond::answer(&nothing));
    }
    Ok(respond::answer(&app.limiter.check(&question, deadline).await?))
}
