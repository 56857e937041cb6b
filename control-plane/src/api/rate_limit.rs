//! `envoy.service.ratelimit.v3.RateLimitService`: Envoy's own rate limit filter asks here.
//!
//! A call's descriptors become checks by the configuration (`rate_limit_service`) and are decided together: all are
//! taken from or none. Envoy's reference service charges each on its own instead, so that a request which one
//! descriptor denies still uses up the others.

mod answer;
mod asked;
mod message;
mod stats;

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::HeaderMap,
    response::Response,
    routing,
};
use sluicegate_wire::{CheckAnswer, CheckRequest, RefundRequest};
use tokio::time::Instant;
use tonic::Status;

use super::{App, body, grpc, respond::Refusal};
use crate::limiter::CheckError;
use asked::Asked;
use message::{RateLimitRequest, RateLimitResponse};

pub use stats::Stats;

/// The full name of the service in gRPC.
pub(super) const NAME: &str = "envoy.service.ratelimit.v3.RateLimitService";

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(&format!("/{NAME}/ShouldRateLimit"), routing::post(should_rate_limit))
}

async fn should_rate_limit(State(app): State<Arc<App>>, request: Request) -> Response {
    let arrived = Instant::now();
    let headers = request.headers().clone();
    grpc::unary(request, async |question| decide(&app, &question, &headers, arrived).await).await
}

/// Takes for all descriptors or for none; where they were taken for, gives back for those that ask for it.
async fn decide(
    app: &App,
    question: &RateLimitRequest,
    headers: &HeaderMap,
    arrived: Instant,
) -> Result<RateLimitResponse, Status> {
    let time_left = grpc::time_left(headers)?;
    let policies = app.limiter.policies.current();
    let asked = Asked::read(question, policies.rate_limit_service())?;
    app.rate_limit_stats.count(&asked, question);
    if !asked.refunds.is_empty() && !app.refunds {
        return Err(grpc::status(&Refusal::RefundsOff));
    }
    let deadline = body::deadline(app, arrived, time_left).map_err(|refusal| grpc::status(&refusal))?;
    let failed = |error| match error {
        // It was there a moment ago: another configuration came in between, and the next call is by that.
        CheckError::UnknownPolicy { .. } => Status::unavailable("the configuration has just changed"),
        error => grpc::status(&Refusal::Check(error)),
    };
    let answer = if asked.checks.is_empty() {
        CheckAnswer { allowed: true, results: Vec::new(), charge: None, deny_cache_ms: None }
    } else {
        let request = CheckRequest { checks: asked.checks.clone() };
        app.limiter.check(&request, deadline).await.map_err(failed)?
    };
    if answer.allowed && !asked.refunds.is_empty() {
        let request = RefundRequest { checks: asked.refunds.clone(), charge: None };
        app.limiter.refund(&request, deadline).await.map_err(failed)?;
    }
    Ok(answer::response(&asked, &answer))
}

#[cfg(test)]
mod tests;
