//! `grpc.health.v1.Health/Check`: readiness for those that ask in gRPC, such as Envoy and Kubernetes.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    response::Response,
    routing,
};
use prost::Message;
use tonic::Status;

use super::{App, grpc, rate_limit};
use crate::serve::Phase;

/// The one method, of which callers need no token.
pub(super) const PATH: &str = "/grpc.health.v1.Health/Check";

/// The messages of `grpc/health/v1/health.proto`.
#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    /// Empty is the server as a whole.
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckResponse {
    #[prost(enumeration = "ServingStatus", tag = "1")]
    status: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
enum ServingStatus {
    Unknown = 0,
    Serving = 1,
    NotServing = 2,
}

/// Only `Check`: `Watch` may be missing, and those that probe don't use it.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new().route(PATH, routing::post(check))
}

async fn check(State(app): State<Arc<App>>, request: Request) -> Response {
    grpc::unary(request, async |HealthCheckRequest { service }| match &*service {
        "" | rate_limit::NAME => {
            let serving = *app.phase.borrow() == Phase::Serving && app.limiter.ready().is_ok();
            let status = if serving { ServingStatus::Serving } else { ServingStatus::NotServing };
            Ok(HealthCheckResponse { status: status.into() })
        }
        _ => Err(Status::not_found(format!("service: there are \"\" and {:?}", rate_limit::NAME))),
    })
    .await
}
