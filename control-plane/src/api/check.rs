//! `POST /v1/check`: from bytes to a decision.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    extract::{FromRequest as _, Request, State, rejection::BytesRejection},
    response::Response,
};
use sluicegate_wire::{CheckAnswer, CheckRequest};
use tokio::time::{Instant, timeout};

use super::{
    App, MAX_CHECKS,
    respond::{self, Refusal},
    time_left::time_left,
};
use crate::store::StoreError;

/// The longest wait for a request's body once its head is there: a caller that is slower is no proxy.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Answers 200 when all checks are allowed and 429 when one is denied. No checks at all is 200 with no results: who
/// asks about nothing is denied nothing. Any content type is taken for JSON.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request) -> Result<Response, Refusal> {
    let arrived = Instant::now();
    let time_left = time_left(request.headers())?;
    let question = parse(&read(request).await?)?;

    // The caller's clock runs from its first byte, the store's only once there is something to ask.
    let asked = Instant::now();
    let caller_gives_up = time_left.and_then(|time_left| arrived.checked_add(time_left));
    let deadline = (asked + app.store_timeout).min(caller_gives_up.unwrap_or(asked + app.store_timeout));
    if deadline <= asked {
        return Err(Refusal::Check(StoreError::Timeout.into()));
    }
    if question.checks.is_empty() {
        return Ok(respond::answer(&CheckAnswer { allowed: true, results: Vec::new(), deny_cache_ms: None }));
    }
    Ok(respond::answer(&app.limiter.check(&question, deadline).await?))
}

async fn read(request: Request) -> Result<Bytes, Refusal> {
    match timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(BytesRejection::FailedToBufferBody(failed))) => Err(Refusal::Body(failed)),
        // Every other rejection is about a body taken before, which none was.
        Ok(Err(_)) => Err(Refusal::NoBody),
        Err(_) => Err(Refusal::SlowBody),
    }
}

fn parse(body: &[u8]) -> Result<CheckRequest, Refusal> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let question: CheckRequest = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        match error.inner().classify() {
            serde_json::error::Category::Data => Refusal::Fields { path, error: error.into_inner() },
            _ => Refusal::Json(error.into_inner()),
        }
    })?;
    json.end().map_err(Refusal::Json)?;
    if question.checks.len() > MAX_CHECKS {
        return Err(Refusal::TooManyChecks(question.checks.len()));
    }
    Ok(question)
}
