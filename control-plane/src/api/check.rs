//! `POST /v1/check`: from bytes to a decision.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use sluicegate_wire::{CheckAnswer, CheckRequest};

use super::{
    App, body,
    openapi::{RefusedCheck, TimeLeft},
    respond::{self, Refusal},
};
use crate::{limiter::Timing, trace::CheckSpan};

/// Answers 200 when all checks are allowed and 429 when one is denied. No checks at all is 200 with no results: who
/// asks about nothing is denied nothing. Any content type is taken for JSON.
#[utoipa::path(post, path = "/v1/check", tag = "checks", security((), ("token" = [])), params(TimeLeft),
    request_body = CheckRequest, responses(
        (status = OK, description = "All enforced checks were allowed, and charged.", body = CheckAnswer),
        (status = TOO_MANY_REQUESTS, description = "One was denied, so none was charged.", body = CheckAnswer),
        RefusedCheck,
    ))]
pub(super) async fn check(State(app): State<Arc<App>>, request: Request) -> Response {
    let mut span = app.traces.check(request.headers());
    let response = decide(&app, request, span.as_mut()).await.into_response();
    if let Some(span) = span {
        span.end(response.status());
    }
    response
}

async fn decide(app: &App, request: Request, span: Option<&mut CheckSpan>) -> Result<Response, Refusal> {
    let (question, deadline) = body::question(app, request, |check: &CheckRequest| check.checks.len()).await?;
    if question.checks.is_empty() {
        let nothing = CheckAnswer { allowed: true, results: Vec::new(), charge: None, deny_cache_ms: None };
        return Ok(respond::answer(&nothing));
    }
    let Some(span) = span else { return Ok(respond::answer(&app.limiter.check(&question, deadline).await?)) };
    span.asks(question.checks.len());
    let mut timing = Timing::default();
    let decided = app.limiter.check_timed(&question, deadline, &mut timing).await;
    span.decided(decided.as_ref(), &timing);
    Ok(respond::answer(&decided?))
}
