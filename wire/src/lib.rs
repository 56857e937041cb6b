//! What the Sluicegate filter and the control service say to each other.
//!
//! One request is a [`CheckRequest`]; one answer is a [`CheckAnswer`] or a [`Problem`]. A [`LeaseRequest`] takes tokens in
//! advance. Both sides ignore unknown
//! fields, so that mixed versions work during a rolling upgrade. Every header value that either program sends comes
//! from [`header`], and every subject becomes a key through [`Subject::encode`].
#![forbid(unsafe_code)]

mod check;
mod cost;
pub mod header;
mod lease;
mod name;
mod problem;
mod subject;

pub use check::{
    Check, CheckAnswer, CheckRequest, LimitResult, Reason, RefundAnswer, RefundRequest, Refunded, decisive,
    shadow_denial,
};
pub use cost::{Cost, CostError};
pub use lease::{Bounded, BoundedError, LeaseAnswer, LeaseMs, LeaseRequest, LeaseTokens};
pub use name::{Name, NameError};
pub use problem::Problem;
pub use subject::{EncodedSubject, EncodedSubjectError, Part, Pepper, Subject, SubjectError};
