//! The Lua scripts of Sluicegate, each with a typed Rust call.
//!
//! A [`Policy`] is a list of [`Limit`]s, each a [`Bucket`] under a name. A [`Take`] turns limits and subjects into one
//! script call and its reply into [`Level`]s; what a level means for a cost (how long to wait, how much is left) is
//! arithmetic here, so that Redis does no more than it must.
//!
//! The scripts are published as `lua/*.lua`, joined from `lua/parts/*.lua`.
#![forbid(unsafe_code)]

mod bucket;
mod key;
mod level;
mod policy;
mod reply;
mod script;
mod take;

pub use bucket::{Bucket, BucketError, MAX_FILL_MS, Refill};
pub use key::{KeyPrefix, bucket_key};
pub use level::{Judgement, Level};
pub use policy::{Limit, Policy, PolicyError};
pub use reply::ReplyError;
pub use script::{RunError, TAKE, TOKEN_BUCKET, load_take};
pub use take::{Charge, Take, Taken, Unit, UnitTaken};
