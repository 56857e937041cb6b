//! One connection to Redis, and when it has to be replaced.

use std::time::Duration;

use redis::{AsyncConnectionConfig, Client, RedisError, aio::MultiplexedConnection};
use sluicegate_lua::{Call, run};
use tokio::{
    sync::Notify,
    time::{Instant, timeout, timeout_at},
};

use super::StoreError;

/// A connection that many calls share.
#[derive(Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    broken: Notify,
}

impl Link {
    /// Connects and takes a first time within `limit`: a server that accepts, but runs no scripts or writes nothing (a
    /// replica, or one that is full), is no store.
    pub(super) async fn open(client: &Client, probe: &Call, limit: Duration) -> Result<Self, StoreError> {
        // Every wait of ours has a deadline of its own, so the client's defaults are switched off.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let open = async {
            let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
            run(probe, &mut connection).await?;
            Ok(Self { connection, broken: Notify::new() })
        };
        timeout(limit, open).await.map_err(|_| StoreError::Timeout)?.map_err(|error: RedisError| error.into())
    }

    /// Runs one call before `deadline`. A reply after that is dropped by the client.
    pub(super) async fn run(&self, call: &Call, deadline: Instant) -> Result<Vec<i64>, StoreError> {
        let mut connection = self.connection.clone();
        let reply = timeout_at(deadline, run(call, &mut connection)).await.map_err(|_| StoreError::Timeout)?;
        if reply.as_ref().is_err_and(needs_new_connection) {
            self.broken.notify_one();
        }
        Ok(reply?)
    }

    /// Waits until a call finds the connection unusable.
    pub(super) async fn broken(&self) {
        self.broken.notified().await;
    }
}

/// A dead connection, or one to a server that has become a replica: only a new connection can find the master.
fn needs_new_connection(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.code() == Some("READONLY")
}
