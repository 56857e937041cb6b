//! `on_failure: local`: token buckets in this proxy, for the time in which the service gives no answer.
//!
//! Each subject of a rule has a bucket (`bucket`), which all workers of the proxy share. The buckets of a rule live in a
//! table of a fixed number of slots (`table`), so that no flood of subjects makes it grow.

mod bucket;
mod table;

pub use bucket::{LocalLimit, LocalLimitError};
pub(crate) use table::{Taken, Takes};
