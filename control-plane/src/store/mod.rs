//! The store: every take goes through here, with a deadline.

mod error;
mod keeper;
mod link;

use std::sync::Arc;

use redis::{Client, IntoConnectionInfo};
use sluicegate_lua::{Take, Taken};
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};

pub use error::StoreError;
use keeper::LinkState;

/// Takes under way at once; more are refused. Far above what one Redis answers within a deadline, so that only a
/// flood meets it.
const MAX_IN_FLIGHT: usize = 10_000;

/// A store whose connection comes and goes by itself.
#[derive(Clone, Debug)]
pub struct Store {
    link: watch::Receiver<LinkState>,
    in_flight: Arc<Semaphore>,
}

impl Store {
    /// A store at `url`, which need not be up. Must be called inside a Tokio runtime.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let refused = |error: redis::RedisError| StoreError::Refused(error.to_string());
        let client = Client::open(url.into_connection_info().map_err(refused)?).map_err(refused)?;
        let (sender, link) = watch::channel(Err(StoreError::Unavailable("not connected yet".into())));
        tokio::spawn(keeper::keep(client, sender));
        Ok(Self { link, in_flight: Arc::new(Semaphore::new(MAX_IN_FLIGHT)) })
    }

    /// Runs one take before `deadline`; without a connection it fails at once.
    pub async fn take(&self, take: &Take, deadline: Instant) -> Result<Taken, StoreError> {
        let _permit = self.in_flight.try_acquire().map_err(|_| StoreError::Overloaded)?;
        let link = self.link.borrow().clone()?;
        link.take(take, deadline).await
    }

    /// Whether a script ran lately, or why not.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.link.borrow().as_ref().map(|_| ()).map_err(Clone::clone)
    }
}
