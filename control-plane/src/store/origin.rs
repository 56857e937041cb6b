//! Where a node's server is: at an address that stays, or where the sentinels say that the master is.

use std::fmt;

use redis::Client;
use tokio::time::Instant;

use super::{StoreError, sentinels::Sentinels};

/// Where a node's server is.
#[derive(Debug)]
pub(super) enum Origin {
    /// Where the configuration or the cluster says.
    Fixed {
        client: Client,
        /// The address, for logs.
        at: String,
    },
    /// Whichever server is the master now.
    Sentinels(Sentinels),
}

impl Origin {
    /// A server that no test connects to.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        let client = Client::open("redis://127.0.0.1:1").unwrap();
        Self::Fixed { client, at: "nowhere".to_owned() }
    }

    /// A client for the server, and its address, before `deadline`.
    pub(super) async fn find(&self, deadline: Instant) -> Result<(Client, String), StoreError> {
        match self {
            Self::Fixed { client, at } => Ok((client.clone(), at.clone())),
            Self::Sentinels(sentinels) => sentinels.find(deadline).await,
        }
    }

    /// Where the server is now, when that is known to be elsewhere than `at`.
    pub(super) async fn moved(&self, at: &str, deadline: Instant) -> Option<String> {
        match self {
            Self::Fixed { .. } => None,
            Self::Sentinels(sentinels) => sentinels.master(deadline).await.ok().filter(|master| master != at),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed { at, .. } => formatter.write_str(at),
            Self::Sentinels(sentinels) => sentinels.fmt(formatter),
        }
    }
}
