//! Counts of HTTP requests, by listener, route and status, and of connections.

use std::{
    fmt::{self, Write as _},
    hash::{Hash, Hasher},
};

use axum::{
    extract::{MatchedPath, Request, State},
    middleware::Next,
    response::Response,
};
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder},
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// Counts requests and connections; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    answered: Family<RequestLabels, Counter>,
    connections: Family<ListenerLabels, Gauge>,
}

/// A listener's requests.
#[derive(Clone, Debug)]
pub struct RequestsOf {
    requests: Requests,
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ListenerLabels {
    listener: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    listener: &'static str,
    path: Route,
    status: u16,
}

/// A route's template, or none for a path that has no route: paths themselves come from callers and never end.
#[derive(Clone, Debug)]
struct Route(Option<MatchedPath>);

impl Requests {
    /// How many connections a listener has.
    pub(crate) fn connections(&self, listener: &'static str) -> Gauge {
        self.connections.get_or_create_owned(&ListenerLabels { listener })
    }

    /// Those of a listener, by its name.
    #[must_use]
    pub fn of(&self, listener: &'static str) -> RequestsOf {
        RequestsOf { requests: self.clone(), listener }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        let answered = self.answered.clone();
        registry.register("http_requests", "Requests answered, by listener, route and status", answered);
        registry.register("open_connections", "Connections by listener", self.connections.clone());
    }
}

/// The middleware that counts.
pub async fn count(State(of): State<RequestsOf>, request: Request, next: Next) -> Response {
    let path = Route(request.extensions().get::<MatchedPath>().cloned());
    let response = next.run(request).await;
    let labels = RequestLabels { listener: of.listener, path, status: response.status().as_u16() };
    of.requests.answered.get_or_create(&labels).inc();
    response
}

impl Route {
    fn as_str(&self) -> &str {
        self.0.as_ref().map_or("other", MatchedPath::as_str)
    }
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl EncodeLabelValue for Route {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(self.as_str())
    }
}
