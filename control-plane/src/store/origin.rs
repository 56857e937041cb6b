//! Where a node's server is: at an address that stays, or where the sentinels say that the master is.

use std::{fmt, sync::Arc};

use redis::Client;
use tokio::time::Instant;

use super::{
    StoreError,
    connect::{Connector, Endpoint},
    sentinels::Sentinels,
};

/// Where a node's server is.
#[derive(Debug)]
pub(super) enum Origin {
    /// Where the configuration or the cluster says.
    Fixed {
        connector: Arc<Connector>,
        server: Endpoint,
        /// The address, for logs.
        at: String,
    },
    /// Whichever server is the master now.
    Sentinels(Sentinels),
}

impl Origin {
    /// The server at an address that stays.
    ///
    /// # Errors
    /// When no client for it could ever be made.
    pub(super) fn fixed(connector: &Arc<Connector>, server: Endpoint, at: String) -> Result<Self, StoreError> {
        connector.server(&server)?;
        Ok(Self::Fixed { connector: Arc::clone(connector), server, at })
    }

    /// A server that no test connects to.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        let text = "store: { url: redis://127.0.0.1:1 }
policies: { a: { limits: [{ name: b, capacity: 1, refill: 1, per: 1s }] } }";
        let config = crate::config::Config::parse("nowhere.yaml", text, &|_| None).unwrap();
        let connector = Arc::new(Connector::new(&config.store).unwrap());
        Self::fixed(&connector, Endpoint::Unix("/nowhere".into()), "nowhere".to_owned()).unwrap()
    }

    /// A client for the server, and its address, before `deadline`.
    pub(super) async fn find(&self, deadline: Instant) -> Result<(Client, String), StoreError> {
        match self {
            Self::Fixed { connector, server, at } => Ok((connector.server(server)?, at.clone())),
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
