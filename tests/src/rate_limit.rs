//! A client of Envoy's rate limit service and of gRPC health, by tonic.
//!
//! The messages are those of Envoy's published protos, as far as tests use them; the service has its own.

use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::http::uri::PathAndQuery;
use prost::Message;
use tonic::{Request, Status, client::Grpc, transport::Channel};
use tonic_prost::ProstCodec;

/// `envoy.service.ratelimit.v3.RateLimitRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitRequest {
    /// The domain.
    #[prost(string, tag = "1")]
    pub domain: String,
    /// What to limit by.
    #[prost(message, repeated, tag = "2")]
    pub descriptors: Vec<Descriptor>,
    /// The cost; 0 is 1.
    #[prost(uint32, tag = "3")]
    pub hits_addend: u32,
}

/// `envoy.extensions.common.ratelimit.v3.RateLimitDescriptor`.
#[derive(Clone, PartialEq, Message)]
pub struct Descriptor {
    /// Its entries.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<Entry>,
    /// Its own cost.
    #[prost(message, optional, tag = "3")]
    pub hits_addend: Option<u64>,
    /// Whether to give back.
    #[prost(bool, tag = "4")]
    pub is_negative_hits: bool,
}

/// One entry.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    /// Its key.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Its value.
    #[prost(string, tag = "2")]
    pub value: String,
}

/// `envoy.service.ratelimit.v3.RateLimitResponse`.
#[derive(Clone, PartialEq, Message)]
pub struct RateLimitResponse {
    /// Whether any descriptor is over its limit.
    #[prost(enumeration = "Code", tag = "1")]
    pub overall_code: i32,
    /// One for each descriptor.
    #[prost(message, repeated, tag = "2")]
    pub statuses: Vec<DescriptorStatus>,
}

/// What a descriptor is told.
#[derive(Clone, PartialEq, Message)]
pub struct DescriptorStatus {
    /// Whether it is over its limit.
    #[prost(enumeration = "Code", tag = "1")]
    pub code: i32,
    /// What is left.
    #[prost(uint32, tag = "3")]
    pub limit_remaining: u32,
}

/// `RateLimitResponse.Code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Code {
    /// Never sent.
    Unknown = 0,
    /// Within the limit.
    Ok = 1,
    /// Over the limit.
    OverLimit = 2,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, Message)]
struct HealthCheckResponse {
    #[prost(int32, tag = "1")]
    status: i32,
}

impl Descriptor {
    /// A descriptor of these entries.
    #[must_use]
    pub fn new(entries: &[(&str, &str)]) -> Self {
        let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
        Self { entries: entries.iter().map(entry).collect(), ..Self::default() }
    }

    /// The same with a cost of its own.
    #[must_use]
    pub fn hits(self, hits: u64) -> Self {
        Self { hits_addend: Some(hits), ..self }
    }
}

/// A client of one service, all of whose calls share a connection.
#[derive(Clone, Debug)]
pub struct RateLimitClient(Channel);

impl RateLimitClient {
    /// A client that connects when it first asks, and again when its connection broke.
    ///
    /// # Errors
    /// When the port makes no address.
    pub fn new(port: u16) -> Result<Self> {
        let endpoint = Channel::from_shared(format!("http://127.0.0.1:{port}")).context("an address")?;
        Ok(Self(endpoint.connect_lazy()))
    }

    /// Asks about these descriptors in the domain `edge`, with time enough.
    ///
    /// # Errors
    /// With the call's status.
    pub async fn ask(&self, descriptors: &[Descriptor]) -> Result<RateLimitResponse, Status> {
        let question =
            RateLimitRequest { domain: "edge".to_owned(), descriptors: descriptors.to_vec(), hits_addend: 0 };
        self.send(question, Duration::from_secs(30)).await
    }

    /// Asks, with this long to answer.
    ///
    /// # Errors
    /// With the call's status.
    pub async fn send(&self, question: RateLimitRequest, timeout: Duration) -> Result<RateLimitResponse, Status> {
        let path = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
        let mut request = Request::new(question);
        request.set_timeout(timeout);
        self.unary(request, path).await
    }

    /// The status of a service in `grpc.health.v1`: 1 where it serves, 2 where it doesn't.
    ///
    /// # Errors
    /// With the call's status.
    pub async fn health(&self, service: &str) -> Result<i32, Status> {
        let request = Request::new(HealthCheckRequest { service: service.to_owned() });
        let answer: HealthCheckResponse = self.unary(request, "/grpc.health.v1.Health/Check").await?;
        Ok(answer.status)
    }

    async fn unary<Q, A>(&self, request: Request<Q>, path: &'static str) -> Result<A, Status>
    where
        Q: Message + Default + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.map_err(|error| Status::unknown(format!("not connected: {error}")))?;
        let path = PathAndQuery::from_static(path);
        grpc.unary(request, path, ProstCodec::default()).await.map(tonic::Response::into_inner)
    }
}
