//! One connection to Redis, and when it has to be replaced.

use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, aio::MultiplexedConnection};
use sluicegate_lua::{RunError, Take, Taken, load_take};
use tokio::{
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};

use super::StoreError;

/// A connection that many takes share.
#[derive(Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    broken: Notify,
}

impl Link {
    /// Connects and loads the script within `limit`: a server that accepts but doesn't run scripts is no store.
    pub(super) async fn open(client: &Client, limit: Duration) -> Result<Self, StoreError> {
        // Every wait of ours has a deadline of its own, so the client's defaults are switched off.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let open = async {
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            load_take(&mut connection).await?;
            Ok(Self { connection, broken: Notify::new() })
        };
        timeout(limit, open).await.map_err(|_| StoreError::Timeout)?.map_err(|error: RunError| error.into())
    }

    /// Runs one take before `deadline`. A reply after that is dropped by the client.
    pub(super) async fn take(&self, take: &Take, deadline: Instant) -> Result<Taken, StoreError> {
        let mut connection = self.connection.clone();
        let outcome = timeout_at(deadline, take.run(&mut connection)).await.map_err(|_| StoreError::Timeout)?;
        if let Err(RunError::Redis(error)) = &outcome
            && needs_new_connection(error)
        {
            self.broken.notify_one();
        }
        Ok(outcome?)
    }

    /// Waits until a take finds the connection unusable.
    pub(super) async fn broken(&self) {
        self.broken.notified().await;
    }
}

/// A dead connection, or one to a server that has become a replica: only a new connection can find the master.
fn needs_new_connection(error: &redis::RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.code() == Some("READONLY")
}
