//! `POST /v1/refund`: gives back what an allowed call took.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Request, State},
};
use sluicegate_wire::{RefundAnswer, RefundRequest};

use super::{
    App, body,
    openapi::{RefusedCheck, TimeLeft},
    respond::Refusal,
};

/// Answers 200 with what each limit got back. Any content type is taken for JSON.
#[utoipa::path(post, path = "/v1/refund", tag = "checks", security((), ("token" = [])), params(TimeLeft),
    request_body = RefundRequest, responses((status = OK, body = RefundAnswer), RefusedCheck))]
pub(super) async fn refund(State(app): State<Arc<App>>, request: Request) -> Result<Json<RefundAnswer>, Refusal> {
    if !app.refunds {
        return Err(Refusal::RefundsOff);
    }
    let (question, deadline) = body::question(&app, request, |refund: &RefundRequest| refund.checks.len()).await?;
    Ok(Json(app.limiter.refund(&question, deadline).await?))
}
