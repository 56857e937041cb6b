//! The Lua scripts of Sluicegate, each with a typed Rust call.
//!
//! A [`Policy`] is a list of [`Limit`]s, each a [`Bucket`] or a [`Quota`] under a name. A [`Take`] turns policies,
//! keys and costs into one script [`Call`] and its reply into [`Taken`]; what that means for each take (how long to
//! wait, how much is left) is arithmetic here, so that the store does no more than it must. [`Give`], [`Reset`],
//! [`Override`] and [`BanNow`] are the other calls.
//!
//! A call runs on Redis ([`run`]) or in this process ([`Memory`]), through the very same Lua files. They are published
//! as `lua/*.lua`, joined from `lua/parts/*.lua`.
#![forbid(unsafe_code)]

mod ban_now;
mod bucket;
mod charge;
mod give;
mod key;
mod level;
mod memory;
mod overrides;
mod policy;
mod quota;
mod redis_store;
mod reply;
mod reset;
mod script;
mod take;
mod taken;

pub use ban_now::{BanNow, BanNowError};
pub use bucket::{Bucket, BucketError, MAX_FILL_MS, Refill};
pub use charge::Charge;
pub use give::{Gift, Give, Given};
pub use key::{KeyPrefix, Keys};
pub use level::{Judgement, Level};
pub use memory::{Memory, MemoryError};
pub use overrides::{Override, OverrideError, OwnNumbers, StoredOverride};
pub use policy::{Ban, Limit, Policy, PolicyError, Rule};
pub use quota::{Every, Quota, QuotaError};
pub use redis_store::run;
pub use reply::{Answer, ReplyError};
pub use reset::Reset;
pub use script::{Call, SCRIPTS, Script, TOKEN_BUCKET};
pub use take::{Take, Unit};
pub use taken::{CheckTaken, Taken, UnitTaken};
