//! The dashboard: a page that shows what `GET /v1/overview`, `GET /v1/events` and `GET /v1/top` say.
//!
//! The files hold no data, so they need no token: the page asks for it. They are part of the program, so the page is
//! never of another version than the service.

use std::sync::Arc;

use axum::{
    Router,
    http::{
        HeaderName, HeaderValue,
        header::{
            CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
            X_FRAME_OPTIONS,
        },
    },
    response::IntoResponse,
    routing,
};

use super::App;

/// A file of the page.
struct File {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

const FILES: [File; 6] = [
    File { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("index.html") },
    File { path: "/dashboard/style.css", content_type: "text/css; charset=utf-8", text: include_str!("style.css") },
    File { path: "/dashboard/app.js", content_type: JAVASCRIPT, text: include_str!("app.js") },
    File { path: "/dashboard/service.js", content_type: JAVASCRIPT, text: include_str!("service.js") },
    File { path: "/dashboard/chart.js", content_type: JAVASCRIPT, text: include_str!("chart.js") },
    File { path: "/dashboard/icon.svg", content_type: "image/svg+xml", text: include_str!("icon.svg") },
];

/// Nothing but these files and this listener: a subject's name that came to be markup would still do nothing.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// The page and what it is made of.
pub(super) fn routes() -> Router<Arc<App>> {
    FILES.iter().fold(Router::new(), |router, file| router.route(file.path, routing::get(async || file.answer())))
}

/// Whether this path is a file of the page, which anybody may have.
pub(super) fn has(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

impl File {
    fn answer(&self) -> impl IntoResponse + use<> {
        let header = |name: HeaderName, value: &'static str| (name, HeaderValue::from_static(value));
        let headers = [
            header(CONTENT_TYPE, self.content_type),
            header(CONTENT_SECURITY_POLICY, POLICY),
            header(X_CONTENT_TYPE_OPTIONS, "nosniff"),
            header(X_FRAME_OPTIONS, "DENY"),
            header(REFERRER_POLICY, "no-referrer"),
            header(HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            header(HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
            // The next version of the service has another page at the same path.
            header(CACHE_CONTROL, "no-cache"),
        ];
        (headers, self.text)
    }
}
