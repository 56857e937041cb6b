//! `lease`: tokens that this proxy took in advance, from which it serves hot subjects without a callout.
//!
//! The workers of a proxy share what is known of a subject (`slot`) in a table of fixed size (`table`). A request takes
//! from a lease that is there, and never waits for one: the worker that sees a lease run dry asks for the next behind it
//! (`callout`), and what nobody needs is given back. `leases` is a worker's part in that.
//!
//! A token is gone from the bucket before it is here, and is served or back within the lease's time after the moment
//! before it was asked for, or lost. So in any `t` ms a bucket admits at most `capacity + rate · (t + for)`.

mod callout;
mod leases;
mod slot;
mod table;

use sluicegate_wire::{LeaseMs, LeaseTokens};

pub use callout::Background;
pub use leases::LeaseTicket;
pub(crate) use leases::{Leased, Leases};

/// How often a worker looks after leases, in ms: the longest that an asking waits to be sent.
pub const TICK_MS: u64 = 10;

/// How a limit leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The most tokens of one subject that this proxy holds.
    pub tokens: LeaseTokens,
    /// How long it holds them.
    pub for_ms: LeaseMs,
}

impl Lease {
    /// The shortest time of a lease, in ms.
    pub const MIN_FOR_MS: u64 = 500;
    /// The last part of that time, in ms, in which tokens are no longer served, but may be given back: two ticks and a
    /// callout.
    const GIVE_BACK_MS: u64 = 100;
}
