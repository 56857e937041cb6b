//! The HTTP interface: which path is answered by what.

mod admin;
mod body;
mod browsers;
mod check;
mod dashboard;
mod grpc;
mod grpc_health;
mod guard;
mod health;
mod lease;
mod mark;
mod metrics;
mod openapi;
mod rate_limit;
mod refund;
mod respond;
mod time_left;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{Router, extract::DefaultBodyLimit, middleware, routing};
use tokio::sync::watch;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    history::History,
    limiter::Limiter,
    metrics::{Metrics, RequestsOf, count},
    serve::Phase,
    trace::Traces,
};
use respond::Refusal;

pub use admin::EventStreams;
pub use browsers::Hosts;
pub use guard::Guard;
pub use rate_limit::Stats as RateLimitStats;

pub(crate) use admin::{
    BanAnswer, BanRequest, BanState, End, GrantAnswer, GrantRequest, Key, LimitView, Numbers, NumbersView,
    OverrideAnswer, OverrideRequest, OverrideView, PeekAnswer, PeekRequest, PoliciesAnswer, PolicyView, RemoveAnswer,
    ResetAnswer, ResetRequest, TopAnswer, UnbanAnswer, UnbanRequest,
};

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
    /// Who follows it.
    pub streams: EventStreams,
    /// When the service started.
    pub started: Instant,
    /// Makes spans of checks.
    pub traces: Traces,
    /// The longest that one decision may take, whatever time the caller has.
    pub store_timeout: Duration,
    /// Whether callers may refund.
    pub refunds: bool,
    /// Whether the service is about to stop.
    pub phase: watch::Receiver<Phase>,
}

/// The data plane: checks, over HTTP with their description, and for Envoy's rate limit filter over gRPC.
pub fn data(app: Arc<App>) -> Router {
    let routes =
        health_routes().routes(routes!(check::check)).routes(routes!(refund::refund)).routes(routes!(lease::lease));
    let described = openapi::described(routes, openapi::Listener::Data);
    finish(described.merge(rate_limit::routes()).merge(grpc_health::routes()), app)
}

/// Everything else.
pub fn admin(app: Arc<App>) -> Router {
    let routes = health_routes().routes(routes!(metrics::metrics)).merge(admin::routes());
    finish(openapi::described(routes, openapi::Listener::Admin).merge(dashboard::routes()), app)
}

/// The same for callers that the guard admits; it answers the others.
pub fn guarded(router: Router, guard: Guard) -> Router {
    let router = if guard.asks_nothing() {
        router
    } else {
        router.layer(middleware::from_fn_with_state(Arc::new(guard), guard::guard))
    };
    router.layer(middleware::from_fn(grpc::speak))
}

/// The same for browsers only on behalf of the listener's own page, and asked by these names.
pub fn for_own_page(router: Router, hosts: Hosts) -> Router {
    router.layer(middleware::from_fn_with_state(Arc::new(hosts), browsers::admit))
}

/// The same for no browser on behalf of another site's page: callers are proxies, which ask by any name.
pub fn for_proxies(router: Router) -> Router {
    router.layer(middleware::from_fn(browsers::refuse_pages))
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

fn health_routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(health::healthz)).routes(routes!(health::readyz))
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
