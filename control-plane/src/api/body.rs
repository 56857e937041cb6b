//! A question's body and how long there is to answer it.

use std::time::Duration;

use axum::{
    body::{Bytes, HttpBody as _},
    extract::{FromRequest as _, Request, rejection::BytesRejection},
};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::{Instant, timeout};

use super::{App, MAX_BODY_BYTES, MAX_CHECKS, respond::Refusal, time_left::time_left};
use crate::store::StoreError;

/// The longest wait for a request's body once its head is there: a caller that is slower is no proxy.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a question with at most [`MAX_CHECKS`] checks, and its deadline: the caller's or `store.timeout`, whichever is
/// nearer.
pub(super) async fn question<Q: DeserializeOwned>(
    app: &App,
    request: Request,
    checks: impl Fn(&Q) -> usize,
) -> Result<(Q, Instant), Refusal> {
    let arrived = Instant::now();
    let time_left = time_left(request.headers())?;
    let question = json(request).await?;
    let count = checks(&question);
    if count > MAX_CHECKS {
        return Err(Refusal::TooManyChecks(count));
    }
    Ok((question, deadline(app, arrived, time_left)?))
}

/// Until when there is time: the caller's clock runs from its first byte, the store's only once there is something to
/// ask.
pub(super) fn deadline(app: &App, arrived: Instant, time_left: Option<Duration>) -> Result<Instant, Refusal> {
    let asked = Instant::now();
    let caller_gives_up = time_left.and_then(|time_left| arrived.checked_add(time_left));
    let deadline = (asked + app.store_timeout).min(caller_gives_up.unwrap_or(asked + app.store_timeout));
    if deadline <= asked {
        return Err(Refusal::Check(StoreError::Timeout.into()));
    }
    Ok(deadline)
}

/// Reads a body of JSON. Any content type is taken for it.
pub(super) async fn json<Q: DeserializeOwned>(request: Request) -> Result<Q, Refusal> {
    parse(&read(request).await?)
}

pub(super) async fn read(request: Request) -> Result<Bytes, Refusal> {
    // One that says so is not waited for.
    if request.body().size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(Refusal::LargeBody);
    }
    match timeout(BODY_TIMEOUT, Bytes::from_request(request, &())).await {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(BytesRejection::FailedToBufferBody(failed))) => Err(Refusal::Body(failed)),
        // Every other rejection is about a body taken before, which none was.
        Ok(Err(_)) => Err(Refusal::NoBody),
        Err(_) => Err(Refusal::SlowBody),
    }
}

fn parse<Q: DeserializeOwned>(body: &[u8]) -> Result<Q, Refusal> {
    // Serde would take the list of a struct's values in the order of its fields, which is nobody's contract.
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(Refusal::List);
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let question = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        match error.inner().classify() {
            Category::Data => Refusal::Fields { path, error: error.into_inner() },
            Category::Io | Category::Syntax | Category::Eof => Refusal::Json(error.into_inner()),
        }
    })?;
    json.end().map_err(Refusal::Json)?;
    Ok(question)
}
