//! The span of one check. It holds names of policies, numbers and reasons, and never a subject.

use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, StatusCode};
use opentelemetry::{
    Context, KeyValue, StringValue, Value,
    propagation::TextMapPropagator as _,
    trace::{Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _},
};
use opentelemetry_http::HeaderExtractor;
use opentelemetry_sdk::{
    propagation::TraceContextPropagator,
    trace::{SdkTracer, Span},
};
use sluicegate_wire::CheckAnswer;

use crate::limiter::{CheckError, Timing};

/// A check's span, which ends with it: dropped without an end, it says that the caller left.
#[derive(Debug)]
pub struct CheckSpan {
    span: Span,
    tracer: SdkTracer,
    ended: bool,
}

impl CheckSpan {
    pub(super) fn start(tracer: &SdkTracer, headers: &HeaderMap) -> Option<Self> {
        let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &HeaderExtractor(headers));
        let span = tracer
            .span_builder("POST /v1/check")
            .with_kind(SpanKind::Server)
            .with_attributes([KeyValue::new("http.request.method", "POST"), KeyValue::new("http.route", "/v1/check")]);
        let span = tracer.build_with_context(span, &parent);
        span.span_context().is_sampled().then(|| Self { span, tracer: tracer.clone(), ended: false })
    }

    /// How many checks the question has.
    pub fn asks(&mut self, checks: usize) {
        // No body has so many that they wouldn't fit.
        self.set("sluicegate.checks", i64::try_from(checks).unwrap_or(i64::MAX));
    }

    /// The store was asked: its stages as far as they got, and what came of them.
    pub fn decided(&mut self, decided: Result<&CheckAnswer, &CheckError>, timing: &Timing) {
        let reason = match decided {
            Ok(answer) => {
                self.set("sluicegate.allowed", answer.allowed);
                let mut policies: Vec<_> = answer.results.iter().map(|result| result.policy.clone()).collect();
                policies.dedup();
                let policies = policies.into_iter().map(StringValue::from).collect();
                self.set("sluicegate.policies", Value::Array(opentelemetry::Array::String(policies)));
                None
            }
            Err(CheckError::Store(error)) => Some(error.reason()),
            Err(CheckError::UnknownPolicy { .. } | CheckError::OtherCharge) => None,
        };
        if let Some(reason) = reason {
            self.set("error.type", reason);
        }
        if let (Some(asked), Some(took)) = (timing.asked, timing.took) {
            let queued = timing.queued.unwrap_or_default();
            if !queued.is_zero() {
                self.stage("queue", SpanKind::Internal, asked, queued, None);
            }
            self.stage("take", SpanKind::Client, asked + queued, took.saturating_sub(queued), reason);
        }
    }

    /// The status of the answer.
    pub fn end(mut self, status: StatusCode) {
        self.set("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            self.span.set_status(Status::error(""));
        }
        self.ended = true;
        self.span.end();
    }

    fn stage(
        &self,
        name: &'static str,
        kind: SpanKind,
        begin: SystemTime,
        took: Duration,
        error: Option<&'static str>,
    ) {
        let within = Context::new().with_remote_span_context(self.span.span_context().clone());
        let span = self.tracer.span_builder(name).with_kind(kind).with_start_time(begin);
        let mut span = self.tracer.build_with_context(span, &within);
        if let Some(reason) = error {
            span.set_attribute(KeyValue::new("error.type", reason));
            span.set_status(Status::error(""));
        }
        span.end_with_timestamp(begin + took);
    }

    fn set(&mut self, key: &'static str, value: impl Into<Value>) {
        self.span.set_attribute(KeyValue::new(key, value));
    }
}

impl Drop for CheckSpan {
    fn drop(&mut self) {
        if !self.ended {
            self.set("error.type", "caller_left");
        }
    }
}
