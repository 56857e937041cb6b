//! The HTTP interface: which path is answered by what.

mod body;
mod check;
mod grpc;
mod grpc_health;
mod guard;
mod health;
mod mark;
mod metrics;
mod rate_limit;
mod refund;
mod respond;
mod time_left;

use std::{sync::Arc, time::Duration};

use axum::{Router, extract::DefaultBodyLimit, middleware, routing};
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;

use crate::{
    history::History,
    limiter::Limiter,
    metrics::{Metrics, RequestsOf, count},
    serve::Phase,
    trace::Traces,
};
use respond::Refusal;

pub use guard::Guard;
pub use rate_limit::Stats as RateLimitStats;

/// The largest request body, in bytes: 64 checks with long keys fit.
pub const MAX_BODY_BYTES: usize = 256 * 1024;
/// The most checks in one request.
pub const MAX_CHECKS: usize = 64;

/// What requests are answered with.
#[derive(Debug)]
pub struct App {
    /// Decides checks.
    pub limiter: Limiter,
    /// What became of the descriptors of Envoy's rate limit filter.
    pub rate_limit_stats: RateLimitStats,
    /// What Prometheus is told.
    pub metrics: Metrics,
    /// The last 15 minutes.
    pub history: History,
    /// Makes spans of checks.
    pub traces: Traces,
    /// The longest that one decision may take, whatever time the caller has.
    pub store_timeout: Duration,
    /// Whether callers may refund.
    pub refunds: bool,
    /// Whether the service is about to stop.
    pub phase: watch::Receiver<Phase>,
}

/// The data plane: checks, over HTTP and for Envoy's rate limit filter over gRPC.
pub fn data(app: Arc<App>) -> Router {
    let routes = health_routes()
        .route("/v1/check", routing::post(check::check))
        .route("/v1/refund", routing::post(refund::refund))
        .merge(rate_limit::routes())
        .merge(grpc_health::routes());
    finish(routes, app)
}

/// Everything else.
pub fn admin(app: Arc<App>) -> Router {
    finish(health_routes().route("/metrics", routing::get(metrics::metrics)), app)
}

/// The same for callers that the guard admits; it answers the others.
pub fn guarded(router: Router, guard: Guard) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(guard), guard::guard)).layer(middleware::from_fn(grpc::speak))
}

/// The same with each answer counted, whoever made it.
pub fn counted(router: Router, requests: RequestsOf) -> Router {
    router.layer(middleware::from_fn_with_state(requests, count))
}

/// What a listener answers on connections that are too many: whether the process lives, which it does, and no more.
pub fn full() -> Router {
    Router::new()
        .route("/healthz", routing::get(health::healthz))
        .fallback(async || Refusal::TooManyConnections)
        .layer(middleware::from_fn(mark::mark_last))
}

fn health_routes() -> Router<Arc<App>> {
    Router::new().route("/healthz", routing::get(health::healthz)).route("/readyz", routing::get(health::readyz))
}

/// Outermost is the mark, so that it is on answers of every kind: also on 404, on 405 and after a panic.
fn finish(routes: Router<Arc<App>>, app: Arc<App>) -> Router {
    routes
        .fallback(async || Refusal::NotFound)
        .method_not_allowed_fallback(async || Refusal::MethodNotAllowed)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(CatchPanicLayer::custom(|_| respond::panicked()))
        .layer(middleware::from_fn_with_state(Arc::clone(&app), mark::mark))
        .with_state(app)
}

#[cfg(test)]
mod tests;
