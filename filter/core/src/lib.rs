//! The decisions of the Sluicegate filter: events in, effects out. No host call, no clock, no panic.
//!
//! One request goes through the modules in this order: [`request`] is what a rule can see, [`decide()`] finds the rule
//! (`matching`, `path`) and builds the question (`key`, `address`, `callout`), [`judge()`] turns what came back
//! (`answer`) into a [`Verdict`]: a pass, a rejection (`reject`) or the rule's failure verdict (`failure`).
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
mod timeout;

pub mod request;

mod address;
mod decide;
mod key;
mod matching;
mod path;

mod callout;

mod answer;
mod failure;
mod judge;
mod reject;

mod failure_log;
pub mod pairs;

pub use answer::{Answer, MAX_ANSWER_BYTES, Outcome};
pub use callout::{Asked, Callout};
pub use config::{Config, ConfigError};
pub use decide::{Decision, decide};
pub use failure::{Failure, FailureKind, OnFailure, RejectStatus};
pub use failure_log::FailureLog;
pub use header::{HeaderName, HeaderValue, own_headers};
pub use judge::{Judgement, Verdict, judge};
pub use key::{Key, KeyPart};
pub use matching::{Matcher, PathMatch};
pub use path::NormalPath;
pub use reject::{GrpcStatus, Rejection};
pub use request::{Field, Headers, Request};
pub use timeout::{Timeout, TimeoutError};
