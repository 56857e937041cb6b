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
/// service is about to stop, `connection: close`.
pub(super) async fn mark(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let version = request.version();
    let mut response = marked(next.run(request).await);
    if *app.phase.borrow() != Phase::Serving {
        close(version, &mut response);
    }
    response
}

/// The same on a connection that is one too many: every answer is its last.
pub(super) async fn mark_last(request: Request, next: Next) -> Response {
    let version = request.version();
    let mut response = marked(next.run(request).await);
    close(version, &mut response);
    response
}

/// With the marker alone.
pub(super) fn marked(mut response: Response) -> Response {
    response.headers_mut().insert(MARKER, HeaderValue::from_static(env!("CARGO_PKG_VERSION")));
    response
}

/// HTTP/1 only: RFC 9113 section 8.2.2 forbids the header in HTTP/2, whose connections get GOAWAY.
fn close(version: Version, response: &mut Response) {
    if version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
}
