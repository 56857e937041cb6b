//! `POST /v1/lease`: tokens for a proxy to give out itself.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use sluicegate_wire::{LeaseAnswer, LeaseRequest};

use super::{
    App, body,
    openapi::{RefusedCheck, TimeLeft},
    respond::Refusal,
};

/// Answers 200 with how many tokens were taken, which may be none. What isn't used is given back by `/v1/refund`, so where
/// that is off there are no leases. The policy must have a single bucket, and no ban. Any content type is taken for JSON.
#[utoipa::path(post, path = "/v1/lease", tag = "checks", security((), ("token" = [])), params(TimeLeft),
    request_body = LeaseRequest, responses((status = OK, body = LeaseAnswer), RefusedCheck))]
pub(super) async fn lease(State(app): State<Arc<App>>, request: Request) -> Result<Json<LeaseAnswer>, Refusal> {
    if !app.refunds {
        return Err(Refusal::LeasesOff);
    }
    let (question, deadline) = body::question(&app, request, |_: &LeaseRequest| 1).await?;
    Ok(Json(app.limiter.lease(&question, deadline).await?))
}
