//! How spans get to the collector: through a bounded queue, by a thread of their own, off the path of any check.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::{
    Resource,
    error::{OTelSdkError, OTelSdkResult},
    trace::{self, BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanProcessor},
};
use tokio::runtime::Handle;

use super::counts::{MAX_WAITING, TraceCounts};

/// How long spans wait for others to travel with.
const BATCH_EVERY: Duration = Duration::from_secs(1);

/// The library's own queue and thread, with what it doesn't count.
pub(super) fn processor(exporter: SpanExporter, runtime: Handle, counts: TraceCounts) -> impl SpanProcessor + 'static {
    let exporter = Delivery { exporter: Arc::new(exporter), runtime, counts: counts.clone(), failing: false.into() };
    let config = BatchConfigBuilder::default().with_max_queue_size(MAX_WAITING).with_scheduled_delay(BATCH_EVERY);
    Bounded { next: BatchSpanProcessor::builder(exporter).with_batch_config(config.build()).build(), counts }
}

/// Lets no more spans in than may wait.
#[derive(Debug)]
struct Bounded {
    next: BatchSpanProcessor,
    counts: TraceCounts,
}

impl SpanProcessor for Bounded {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.next.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        // Others are not exported, so they would wait forever.
        if span.span_context.is_sampled() && self.counts.admit() {
            self.next.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.next.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.next.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.next.set_resource(resource);
    }
}

/// Sends on the runtime, which the client needs and the library's thread isn't part of, and says in the log when the
/// collector stops or begins to take spans.
#[derive(Debug)]
struct Delivery {
    exporter: Arc<SpanExporter>,
    runtime: Handle,
    counts: TraceCounts,
    failing: AtomicBool,
}

impl trace::SpanExporter for Delivery {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len();
        self.counts.sending(spans);
        let exporter = Arc::clone(&self.exporter);
        let sending = self.runtime.spawn(async move { exporter.export(batch).await });
        let sent = sending.await.unwrap_or_else(|error| Err(OTelSdkError::InternalFailure(error.to_string())));
        self.counts.sent(spans, sent.is_ok());
        self.tell(&sent);
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        // Nothing has been sent yet, so nobody else has it.
        if let Some(exporter) = Arc::get_mut(&mut self.exporter) {
            exporter.set_resource(resource);
        }
    }
}

impl Delivery {
    fn tell(&self, sent: &OTelSdkResult) {
        let failed_before = self.failing.swap(sent.is_err(), Ordering::Relaxed);
        match sent {
            Err(error) if !failed_before => tracing::warn!(%error, "the collector takes no traces; they are dropped"),
            Ok(()) if failed_before => tracing::info!("the collector takes traces again"),
            _ => {}
        }
    }
}
