//! OpenTelemetry traces: a span for each check, continued from the caller's, sent to a collector over OTLP/HTTP.
//!
//! Off unless the environment names a collector. The variables are those of the OpenTelemetry specification
//! ("OTLP Exporter Configuration", "SDK Environment Variables"), most of which the library reads itself. Spans are made
//! by its own interface rather than by `tracing` spans, which would cost every check even without traces.

mod check;
mod counts;
mod delivery;

use std::time::Duration;

use axum::http::{HeaderMap, Uri};
use opentelemetry::{KeyValue, trace::TracerProvider as _};
use opentelemetry_http::{HttpClient, hyper::HyperClient};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use tokio::runtime::Handle;

pub use check::CheckSpan;
pub use counts::TraceCounts;

/// The variables that name a collector: the second as a whole, the first without the path `/v1/traces`.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
/// The variables that say how to speak to it.
const PROTOCOLS: [&str; 2] = ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"];
/// The one way that is built in.
const PROTOCOL: &str = "http/protobuf";
/// The longest that a collector may take for what it is sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest that the end of the service waits for the last spans to be sent.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Makes spans, or none at all.
#[derive(Clone, Debug, Default)]
pub struct Traces {
    to: Option<Collector>,
    counts: TraceCounts,
}

#[derive(Clone, Debug)]
struct Collector {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
}

/// Why traces can't be sent as the environment says.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// Not a URL to send anything to.
    #[error("{0}: is not a URL such as http://127.0.0.1:4318 or https://collector.example")]
    Endpoint(&'static str),
    /// Another protocol.
    #[error("{variable}: {protocol:?} is not spoken here; use {PROTOCOL}, which collectors take on port 4318")]
    Protocol {
        /// The variable.
        variable: &'static str,
        /// What it says.
        protocol: String,
    },
    /// What else the library finds wrong.
    #[error("OTEL_EXPORTER_OTLP_*: {0}")]
    Exporter(#[from] opentelemetry_otlp::ExporterBuildError),
    /// There is no TLS.
    #[error("traces: {0}")]
    Tls(#[from] rustls::Error),
}

impl Traces {
    /// Traces as the environment says: off unless it names a collector. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// When a variable means nothing.
    pub fn from_environment(environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, TraceError> {
        let set = |variable| environment(variable).filter(|value| !value.is_empty());
        let off = set("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if off || ENDPOINTS.into_iter().all(|variable| set(variable).is_none()) {
            return Ok(Self::default());
        }
        for variable in ENDPOINTS {
            if let Some(endpoint) = set(variable) {
                check_endpoint(variable, &endpoint)?;
            }
        }
        for variable in PROTOCOLS {
            if let Some(protocol) = set(variable).filter(|protocol| protocol != PROTOCOL) {
                return Err(TraceError::Protocol { variable, protocol });
            }
        }
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client()?)
            .build()?;
        let counts = TraceCounts::default();
        let processor = delivery::processor(exporter, Handle::current(), counts.clone());
        let mut resource = Resource::builder();
        if set("OTEL_SERVICE_NAME").is_none() {
            resource = resource.with_service_name("sluicegate");
        }
        let version = KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.with_attribute(version).build())
            .with_span_processor(processor)
            .build();
        let tracer = provider.tracer("sluicegate");
        Ok(Self { to: Some(Collector { provider, tracer }), counts })
    }

    /// Whether spans go anywhere.
    #[must_use]
    pub const fn are_on(&self) -> bool {
        self.to.is_some()
    }

    /// How many spans went where.
    #[must_use]
    pub const fn counts(&self) -> &TraceCounts {
        &self.counts
    }

    /// A span for a check that begins now, when its caller's span, or the sampler for a caller without one, says so.
    #[must_use]
    pub fn check(&self, headers: &HeaderMap) -> Option<CheckSpan> {
        CheckSpan::start(&self.to.as_ref()?.tracer, headers)
    }

    /// Sends what is left, for a few seconds at most.
    pub async fn stop(self) {
        if let Some(Collector { provider, .. }) = self.to {
            // It waits for a thread of its own. What comes of it is counted.
            let stopping = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(STOP_TIMEOUT));
            let _ = tokio::time::timeout(STOP_TIMEOUT, stopping).await;
        }
    }
}

fn check_endpoint(variable: &'static str, endpoint: &str) -> Result<(), TraceError> {
    let uri: Uri = endpoint.parse().map_err(|_| TraceError::Endpoint(variable))?;
    match (uri.scheme_str(), uri.host()) {
        (Some("http" | "https"), Some(host)) if !host.is_empty() => Ok(()),
        _ => Err(TraceError::Endpoint(variable)),
    }
}

/// HTTP/1, with TLS where the URL says `https`, trusting whom the system trusts.
fn client() -> Result<impl HttpClient + 'static, rustls::Error> {
    let mut roots = RootCertStore::empty();
    // One that can't be read is one less to trust; without any, no server is.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    Ok(HyperClient::new(connector.build(), SEND_TIMEOUT, None))
}

#[cfg(test)]
mod tests;
