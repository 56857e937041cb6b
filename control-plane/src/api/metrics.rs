//! `GET /metrics`: what Prometheus is told.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};

use super::{App, openapi::RefusedLook};
use crate::metrics::Metrics;

/// The counts, in the text format of OpenMetrics.
#[utoipa::path(get, path = "/metrics", tag = "health", security((), ("token" = [])), responses(
    (status = OK, body = String, content_type = "application/openmetrics-text"),
    RefusedLook,
))]
pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    ([(CONTENT_TYPE, Metrics::CONTENT_TYPE)], app.metrics.text()).into_response()
}
