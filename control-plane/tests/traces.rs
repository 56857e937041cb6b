//! Traces as a collector sees them.

mod service;

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use axum::{Router, body::Bytes, routing};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::Message as _;
use rustix::process::Signal;
use service::{Http1, Service, until};
use tokio::net::TcpListener;

const CHECK: &str =
    r#"{"checks":[{"policy":"api","key":"alice@example.com"},{"policy":"api","key":["bob",{"secret":"hunter2"}]}]}"#;
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// A collector that keeps what it is sent.
struct Collector {
    address: SocketAddr,
    sent: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let sent = Arc::<Mutex<Vec<_>>>::default();
        let kept = Arc::clone(&sent);
        let take = async move |body: Bytes| {
            kept.lock().unwrap().push(ExportTraceServiceRequest::decode(body).unwrap());
        };
        tokio::spawn(async { axum::serve(listener, Router::new().route("/v1/traces", routing::post(take))).await });
        Self { address, sent }
    }

    fn spans(&self) -> Vec<Span> {
        let sent = self.sent.lock().unwrap();
        let scopes = sent.iter().flat_map(|sent| &sent.resource_spans).flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| &scope.spans).cloned().collect()
    }

    /// A service that sends its traces here.
    fn service(&self) -> Service {
        sending_to(self.address)
    }
}

fn sending_to(address: SocketAddr) -> Service {
    const FIELDS: &str = "drain: 0s
store: { url: 'memory://', timeout: 5s }
policies: { api: { limits: [ { name: burst, capacity: 1000000, refill: 1, per: 1s } ] } }";
    let mut command = service::command();
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}"));
    Service::launched(FIELDS, command)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attribute<'a>(span: &'a Span, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key == key)?.value.as_ref()?.value.as_ref()
}

async fn span(collector: &Collector, name: &str) -> Span {
    until(name, async || collector.spans().into_iter().find(|span| span.name == name)).await
}

#[tokio::test]
async fn a_check_continues_the_trace_of_its_caller_when_that_is_sampled() {
    let collector = Collector::start().await;
    let service = collector.service();
    let mut client = Http1::connect(service.data).await;
    // Not sampled: it must not arrive, and would before the one after it.
    let other = format!("traceparent: 00-{}-{PARENT}-00\r\n", "1".repeat(32));
    assert!(client.check(&other, CHECK).await.starts_with("http/1.1 200"));
    let sampled = format!("traceparent: 00-{TRACE}-{PARENT}-01\r\n");
    assert!(client.check(&sampled, CHECK).await.starts_with("http/1.1 200"));

    let check = span(&collector, "POST /v1/check").await;
    let take = span(&collector, "take").await;
    assert_eq!((hex(&check.trace_id), hex(&check.parent_span_id)), (TRACE.to_owned(), PARENT.to_owned()));
    assert_eq!((&take.trace_id, &take.parent_span_id), (&check.trace_id, &check.span_id));
    assert_eq!((check.kind(), take.kind()), (SpanKind::Server, SpanKind::Client));
    assert!(check.start_time_unix_nano <= take.start_time_unix_nano, "{check:?} {take:?}");
    assert!(take.end_time_unix_nano > take.start_time_unix_nano);
    assert_eq!(attribute(&check, "http.response.status_code"), Some(&Value::IntValue(200)));
    assert_eq!(attribute(&check, "sluicegate.checks"), Some(&Value::IntValue(2)));
    assert_eq!(attribute(&check, "sluicegate.allowed"), Some(&Value::BoolValue(true)));

    let spans = collector.spans();
    assert_eq!(spans.len(), 2, "{spans:?}");
    let sent = format!("{:?}", collector.sent.lock().unwrap());
    for secret in ["alice", "bob", "hunter2"] {
        assert!(!sent.contains(secret), "{secret} is in {sent}");
    }
    assert!(sent.contains(r#"StringValue("sluicegate")"#), "the service's name is not in {sent}");
}

#[tokio::test]
async fn a_check_without_a_decision_is_an_error_that_says_why() {
    let collector = Collector::start().await;
    let service = collector.service();
    let mut client = Http1::connect(service.data).await;
    assert!(client.check("x-sluicegate-timeout-ms: 0\r\n", CHECK).await.starts_with("http/1.1 503"));
    let check = span(&collector, "POST /v1/check").await;
    assert_eq!(attribute(&check, "http.response.status_code"), Some(&Value::IntValue(503)));
    assert_eq!(check.status.unwrap().code(), StatusCode::Error);
    assert!(check.parent_span_id.is_empty(), "it has no caller, and begins a trace");
}

#[tokio::test]
async fn the_last_spans_are_sent_before_the_process_ends() {
    let collector = Collector::start().await;
    let mut service = collector.service();
    assert!(Http1::connect(service.data).await.check("", CHECK).await.starts_with("http/1.1 200"));
    service.signal(Signal::TERM);
    assert_eq!(service.ended().await.code(), Some(0));
    assert_eq!(collector.spans().len(), 2);
}

/// The value of a line of `/metrics`.
async fn metric(service: &Service, line: &str) -> u64 {
    let mut admin = Http1::connect(service.admin).await;
    admin.write("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let (_, text) = admin.whole_answer().await;
    let value = text.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{line} is not in {text}")).parse().unwrap()
}

/// A collector that takes connections and never answers: its queue fills up, and no check waits for it.
#[tokio::test]
async fn a_silent_collector_costs_spans_and_no_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut service = sending_to(silent.local_addr().unwrap());
    let mut client = Http1::connect(service.data).await;
    let mut slowest = Duration::ZERO;
    let dropped = "sluicegate_trace_spans_total{outcome=\"queue_full\"}";
    until("spans are dropped", async || {
        for _ in 0..500 {
            let asked = Instant::now();
            assert!(client.check("", CHECK).await.starts_with("http/1.1 200"));
            slowest = slowest.max(asked.elapsed());
        }
        (metric(&service, dropped).await > 0).then_some(())
    })
    .await;
    assert!(slowest < Duration::from_secs(2), "a check took {slowest:?}");
    service.signal(Signal::TERM);
    let stopping = Instant::now();
    assert_eq!(service.ended().await.code(), Some(0));
    assert!(stopping.elapsed() < Duration::from_secs(8), "it took {:?} to stop", stopping.elapsed());
}

#[tokio::test]
async fn a_collector_that_is_down_is_told_of_once_and_counted() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let service = sending_to(nobody);
    let mut client = Http1::connect(service.data).await;
    let undelivered = "sluicegate_trace_spans_total{outcome=\"undelivered\"}";
    for batch in 1..=2 {
        assert!(client.check("", CHECK).await.starts_with("http/1.1 200"));
        until("spans are given up", async || (metric(&service, undelivered).await >= 2 * batch).then_some(())).await;
    }
    let warning = service.logged("the collector takes no traces; they are dropped");
    assert_eq!(warning["level"], "WARN");
    assert_eq!(service.logged_since().len(), 0, "one line for both");
}
