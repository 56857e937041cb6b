//! What is on every answer, whoever made it.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderValue, Version, header::CONNECTION},
    middleware::Next,
    response::Response,
};
use sluicegate_wire::header::MARKER;

use super::App;
use crate::serve::Phase;

/// Adds the marker, by which a proxy tells this service's answers from those of something on the way, and, once the
/// service is about to stop, `connection: close` (HTTP/1 only: RFC 9113 section 8.2.2 forbids it in HTTP/2, whose
/// connections get GOAWAY).
pub(super) async fn mark(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let version = request.version();
    let mut response = next.run(request).await;
    response.headers_mut().insert(MARKER, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    if version < Version::HTTP_2 && *app.phase.borrow() != Phase::Serving {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
