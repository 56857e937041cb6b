//! Asking Redis Sentinel which server is the master.

use std::{fmt, sync::Arc, time::Duration};

use redis::{AsyncConnectionConfig, Client, cmd};
use tokio::time::Instant;

use super::{
    StoreError,
    connect::{Connector, Endpoint},
    votes::most_said,
};
use crate::config::HostPort;

/// How long the sentinels may take: those that are gone must not eat up the time that connecting has.
const TIMEOUT: Duration = Duration::from_millis(500);

/// The sentinels of one master.
#[derive(Debug)]
pub(super) struct Sentinels {
    /// Their addresses.
    addresses: Vec<HostPort>,
    /// The master's name.
    name: String,
    /// The sentinels' addresses, for logs.
    shown: String,
    connector: Arc<Connector>,
}

impl Sentinels {
    /// The sentinels at these addresses.
    pub(super) fn new(addresses: &[HostPort], name: &str, connector: Arc<Connector>) -> Result<Self, StoreError> {
        // Whether a client can be made shows at once, though each question has one of its own.
        addresses.iter().try_for_each(|address| connector.sentinel(address).map(drop))?;
        let shown = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        Ok(Self { addresses: addresses.to_vec(), name: name.to_owned(), shown, connector })
    }

    /// A client for the master, and its address.
    pub(super) async fn find(&self, deadline: Instant) -> Result<(Client, String), StoreError> {
        let master = self.ask(deadline).await?;
        let at = master.to_string();
        Ok((self.connector.server(&Endpoint::Tcp(master))?, at))
    }

    /// The master's address.
    pub(super) async fn master(&self, deadline: Instant) -> Result<String, StoreError> {
        self.ask(deadline).await.map(|master| master.to_string())
    }

    async fn ask(&self, deadline: Instant) -> Result<HostPort, StoreError> {
        let deadline = deadline.min(Instant::now() + TIMEOUT);
        let questions =
            self.addresses.iter().map(|address| ask_one(self.connector.sentinel(address), self.name.clone()));
        most_said(questions, deadline).await.map_err(|error| {
            let error = error.at_once();
            StoreError::Unavailable(format!("no sentinel says where the master {:?} is: {error}", self.name))
        })
    }
}

async fn ask_one(client: Result<Client, StoreError>, name: String) -> Result<HostPort, StoreError> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let mut connection = client?.get_multiplexed_async_connection_with_config(&config).await?;
    let mut command = cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
    let answer: Option<(String, u16)> = command.query_async(&mut connection).await?;
    let (host, port) = answer.ok_or_else(|| StoreError::Refused("it knows no master of that name".to_owned()))?;
    Ok(HostPort { host, port })
}

impl fmt::Display for Sentinels {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} by sentinels {}", self.name, self.shown)
    }
}
