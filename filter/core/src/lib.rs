//! The decisions of the Sluicegate filter: events in, effects out. No host call, no clock, no panic.
//!
//! One request goes through the modules in this order: [`request`] is what a rule can see, [`decide()`] finds the rules
//! (`matching`) and builds the question (`key`, `source`, `choice`, `callout`), [`judge()`] turns what came back
//! (`answer`) into a [`Verdict`]: a pass, a rejection (`reject`) or the rule's failure verdict (`failure`, [`local`]). A
//! [`Worker`] goes through all of it and adds what it remembers: `breaker` and `deny_cache` save callouts. A [`Refund`]
//! waits for the response. Tokens that the proxy took in advance (`lease`) answer what they can before anybody is asked.
#![forbid(unsafe_code)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unreachable,
    clippy::unwrap_used
)]

pub mod config;
mod header;
mod span;
mod timeout;

pub mod request;

mod decide;

mod doubt;
mod header_match;
mod host;
mod matching;
mod network;
mod path;
mod path_match;
mod pattern;
mod template;
mod view;

mod address;
mod choice;
mod cookie;
mod key;
mod percent;
mod property;
mod query;
mod source;

mod asked;
mod callout;

mod answer;
mod failure;
mod judge;
pub mod local;
mod refund;
mod reject;
mod style;
mod verdict_label;

mod breaker;
mod deny_cache;
pub mod shared;

mod failure_log;
mod lease;
mod metric;
pub mod pairs;
mod worker;

pub use answer::{Answer, MAX_ANSWER_BYTES, Outcome, read};
pub use asked::Asked;
pub use breaker::BreakerConfig;
pub use callout::Callout;
pub use choice::{ByValue, CostChoice, PolicyChoice};
pub use config::{Config, ConfigError, Limit, Rule};
pub use decide::{Decision, decide};
pub use deny_cache::DenyCacheConfig;
pub use failure::{Failure, FailureKind, OnFailure, RejectStatus};
pub use failure_log::FailureLog;
pub use header::{HeaderLine, HeaderName, HeaderValue, own_headers};
pub use header_match::{HeaderIs, HeaderMatch};
pub use host::{HostMatch, HostMatchError};
pub use judge::{Judgement, Verdict, judge};
pub use key::{Key, KeyPart, Missing};
pub use lease::{Background, Lease, LeaseTicket, TICK_MS};
pub use local::LocalLimit;
pub use matching::Matcher;
pub use metric::{LabelForm, Measure, Metric, MetricKind};
pub use network::{Network, NetworkError};
pub use path::NormalPath;
pub use path_match::{PathForm, PathMatch, PathOptions};
pub use pattern::{Pattern, PatternError};
pub use refund::{OnlyStatus, Refund, RefundCallout};
pub use reject::{GrpcStatus, Rejection};
pub use request::{Field, Headers, Request};
pub use shared::SharedData;
pub use source::Source;
pub use span::{Span, SpanError};
pub use style::{LimitHeaders, RejectStyle, Style};
pub use template::{Template, TemplateError};
pub use timeout::{Timeout, TimeoutError};
pub use verdict_label::VerdictLabel;
pub use worker::{Step, Surroundings, Ticket, Worker};
