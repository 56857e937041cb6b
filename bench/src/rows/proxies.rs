//! Envoys to compare: without limits, with our filter, and with Envoy's own. All have one worker and no access log.

use anyhow::Result;
use serde_json::{Value, json};
use sluicegate_tests::{Envoy, Overlay};

/// The header that names the subject, and the one that a hot key is.
pub(super) const SUBJECT: &str = "x-user";

/// The most tokens of a lease: what one worker admits in about a third of a second.
pub(super) const LEASE: u64 = 1000;

/// One rule for everything: a limit of `policy` by [`SUBJECT`], and a rejection where there is no answer, so that a
/// failure shows as a wrong answer. With `lease` the filter takes tokens in advance.
pub(super) fn plugin(policy: &str, lease: bool) -> Value {
    let mut limit = json!({ "policy": policy, "key": [{ "header": SUBJECT }] });
    if lease {
        limit["lease"] = json!({ "tokens": LEASE, "for": "2s" });
    }
    plugin_of(&limit, "closed")
}

/// One rule with this limit.
pub(super) fn plugin_of(limit: &Value, on_failure: &str) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "1s" },
        "rules": [{ "name": "all", "limits": [limit], "on_failure": on_failure }],
    })
}

/// Envoy with our filter.
pub(super) async fn ours(service_port: u16, upstream_port: u16, plugin: &Value) -> Result<Envoy> {
    Envoy::start(&alike(Overlay::new(service_port, upstream_port).plugin(plugin))).await
}

/// Envoy with its own filter, which asks this port for each request.
pub(super) async fn theirs(grpc_port: u16, upstream_port: u16) -> Result<Envoy> {
    let action = json!({ "request_headers": { "header_name": SUBJECT, "descriptor_key": "user" } });
    let route = json!({ "cluster": "upstream", "timeout": "10s", "rate_limits": [{ "actions": [action] }] });
    let overlay = Overlay::rate_limit_filter(grpc_port, upstream_port)
        .filter(json!({ "domain": "bench", "timeout": "1s", "failure_mode_deny": true }))
        .routes(json!([{ "match": { "prefix": "/" }, "route": route }]))
        .cluster("sluicegate", json!({ "health_checks": null }));
    Envoy::start(&alike(overlay)).await
}

/// Envoy without any limit.
pub(super) async fn bare(upstream_port: u16) -> Result<Envoy> {
    Envoy::start(&without_filter(upstream_port)).await
}

/// Envoy that answers 429 itself.
pub(super) async fn refusing() -> Result<Envoy> {
    let response = json!({ "status": 429, "body": { "inline_string": "Too many requests\n" } });
    let routes = json!([{ "match": { "prefix": "/" }, "direct_response": response }]);
    Envoy::start(&without_filter(1).routes(routes)).await
}

fn without_filter(upstream_port: u16) -> Overlay {
    let router = json!({
        "name": "envoy.filters.http.router",
        "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
    });
    alike(Overlay::new(1, upstream_port)).manager(json!({ "http_filters": [router] }))
}

fn alike(overlay: Overlay) -> Overlay {
    overlay.workers(1).manager(json!({ "access_log": null }))
}
