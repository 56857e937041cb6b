//! The store: every call goes through here, with a deadline.

mod clock;
mod error;
mod keeper;
mod link;

use std::sync::Arc;

use redis::{Client, IntoConnectionInfo};
use sluicegate_lua::{
    Answer, Bucket, Call, Charge, Give, Given, KeyPrefix, Limit, Memory, Policy, Refill, ReplyError, Take, Taken, Unit,
};
use sluicegate_wire::{Cost, Name};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

use crate::config::StoreUrl;
use clock::StoreClock;
pub use error::StoreError;
use keeper::LinkState;

/// Calls under way at once; more are refused. Far above what one Redis answers within a deadline, so that only a
/// flood meets it.
const MAX_IN_FLIGHT: usize = 10_000;

/// Where the limits are kept.
#[derive(Clone, Debug)]
pub struct Store {
    backend: Backend,
    clock: Arc<StoreClock>,
    in_flight: Arc<Semaphore>,
}

#[derive(Clone, Debug)]
enum Backend {
    /// A server, whose connection comes and goes by itself.
    Redis(watch::Receiver<LinkState>),
    /// This process.
    Memory(Memory),
}

impl Store {
    /// The store at `url`, which need not be up, with keys that begin with `prefix`. Must be called inside a Tokio
    /// runtime.
    pub fn open(url: &StoreUrl, prefix: &KeyPrefix) -> Result<Self, StoreError> {
        let backend = if url.is_memory() {
            tracing::warn!(
                "limits are kept in this process: no other replica shares them, and nothing outlives a restart"
            );
            Backend::Memory(Memory::new(clock::machine_ms)?)
        } else {
            let client = Client::open(url.expose().into_connection_info()?)?;
            let (sender, link) = watch::channel(Err(StoreError::Unavailable("not connected yet".into())));
            tokio::spawn(keeper::keep(client, probe(prefix)?, sender));
            Backend::Redis(link)
        };
        Ok(Self { backend, clock: Arc::default(), in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)) })
    }

    /// Takes before `deadline`; without a connection it fails at once.
    pub async fn take(&self, take: &Take, deadline: Instant) -> Result<Taken, StoreError> {
        self.answered(|now_ms| take.call(now_ms), |reply| take.read(reply), deadline).await
    }

    /// Gives before `deadline`; without a connection it fails at once.
    pub async fn give(&self, give: &Give, deadline: Instant) -> Result<Given, StoreError> {
        self.answered(|now_ms| give.call(now_ms), |reply| give.read(reply), deadline).await
    }

    /// Whether a script ran lately, or why not.
    pub fn ready(&self) -> Result<(), StoreError> {
        match &self.backend {
            Backend::Redis(link) => link.borrow().as_ref().map(|_| ()).map_err(Clone::clone),
            Backend::Memory(_) => Ok(()),
        }
    }

    /// Makes a call for the store's time, and once more when that was not what we thought: then nothing was done.
    async fn answered<T>(
        &self,
        call: impl Fn(u64) -> Call,
        read: impl Fn(&[i64]) -> Result<Answer<T>, ReplyError>,
        deadline: Instant,
    ) -> Result<T, StoreError> {
        let _permit = self.in_flight.try_acquire().map_err(|_| StoreError::Overloaded)?;
        for _ in 0..2 {
            let reply = self.run(&call(self.clock.now_ms()), deadline).await?;
            match read(&reply)? {
                Answer::Done(answer) => return Ok(answer),
                Answer::OtherTime { now_ms } => self.clock.correct(now_ms),
            }
        }
        Err(StoreError::Refused("its clock jumps".into()))
    }

    async fn run(&self, call: &Call, deadline: Instant) -> Result<Vec<i64>, StoreError> {
        match &self.backend {
            Backend::Redis(link) => {
                let link = link.borrow().clone()?;
                link.run(call, deadline).await
            }
            Backend::Memory(memory) => Ok(memory.run(call)?),
        }
    }
}

/// A take like any other, from a bucket that is full again a ms later. No policy has its name's `!`.
fn probe(prefix: &KeyPrefix) -> Result<Call, StoreError> {
    let refused = |error: &dyn std::fmt::Display| StoreError::Refused(error.to_string());
    let bucket = Bucket::new(1_000, 1_000, 1, Refill::Greedy).map_err(|error| refused(&error))?;
    let name: Name = "probe".parse().map_err(|error| refused(&error))?;
    let policy =
        Policy::new(name.clone(), vec![Limit { name, rule: bucket.into() }]).map_err(|error| refused(&error))?;
    let charge = Charge { policy: Arc::new(policy), keys: prefix.probe_keys(), cost: Cost::ONE };
    Ok(Take { takes: 1, units: vec![Unit { charges: vec![charge], enforced: true }] }.call(0))
}
