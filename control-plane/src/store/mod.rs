//! The store: every call goes through here, with a deadline.
//!
//! A call is let in (`admission`), joined with equal ones (`join`), made for each slot that it touches (`calls`,
//! `split`), and sent over a link to a server (`node`, `link`), which a task of its own keeps (`keeper`).

mod admission;
mod backoff;
mod breaker;
mod calls;
mod clock;
mod cluster;
mod connect;
mod error;
mod failure;
mod join;
mod keeper;
mod link;
mod news;
mod node;
mod origin;
mod probe;
mod sentinels;
mod servers;
mod split;
mod stats;
mod survey;
mod votes;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use prometheus_client::registry::Registry;
use sluicegate_lua::{Call, Give, Given, KeyPrefix, Keys, Memory, Take, Taken};
use tokio::time::Instant;

use crate::{config, metrics::Stages};
use admission::Admission;
use calls::{Backend, Calls};
use cluster::{Cluster, Members};
use connect::{Connector, Endpoint};
pub use error::StoreError;
use join::Joiner;
pub use join::Share;
use keeper::Keeper;
use node::Node;
use origin::Origin;
use sentinels::Sentinels;
pub use servers::{Connections, Server};
use stats::Stats;

/// Where the limits are kept.
#[derive(Clone, Debug)]
pub struct Store {
    calls: Arc<Joiner<Calls>>,
    admission: Admission,
    stats: Stats,
}

/// How servers are called.
#[derive(Clone, Debug)]
struct Settings {
    /// How long a call may take, connecting included (`store.timeout`).
    timeout: Duration,
    /// What every key begins with (`store.prefix`).
    prefix: KeyPrefix,
    /// Connections to each server (`store.connections`).
    links: usize,
}

impl Store {
    /// The store that the configuration names, which need not be up. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// When no connection could ever be made, for example because a certificate is none.
    pub fn open(config: &config::Store) -> Result<Self, StoreError> {
        let stats = Stats::default();
        let calls = Joiner::new(Calls::new(backend(config)?, stats.clone()), stats.stages.clone());
        let admission = Admission::new(config.max_in_flight.get());
        Ok(Self { calls: Arc::new(calls), admission, stats })
    }

    /// Takes once before `deadline`, alone or together with equal takes. While the store is down it fails at once.
    ///
    /// # Errors
    /// When there is no decision; what was asked for may have been charged all the same.
    pub async fn take(&self, take: Take, deadline: Instant) -> Result<Share, StoreError> {
        self.counted(async {
            let _admitted = self.admission.admit()?;
            if self.calls.store().may_join(&take) {
                self.calls.take(take, deadline).await
            } else {
                self.calls.alone(take, deadline).await
            }
        })
        .await
    }

    /// Makes as many takes as `take` says, all on one slot: that of `keys`. While the store is down it fails at once.
    ///
    /// # Errors
    /// When there is no decision; what was asked for may have been charged all the same.
    pub async fn take_many(&self, take: &Take, keys: &Keys, deadline: Instant) -> Result<Taken, StoreError> {
        self.counted(async {
            let _admitted = self.admission.admit()?;
            self.calls.unjoined(|calls| calls.take_on(take, keys, deadline)).await
        })
        .await
    }

    /// Gives before `deadline`. While the store is down it fails at once.
    ///
    /// # Errors
    /// When it isn't known that all was given.
    pub async fn give(&self, give: &Give, deadline: Instant) -> Result<Given, StoreError> {
        self.counted(async {
            let _admitted = self.admission.admit()?;
            self.calls.store().give(give, deadline).await
        })
        .await
    }

    /// Runs another call, all of whose keys are among `keys`, before `deadline`. While the store is down it fails at
    /// once.
    ///
    /// # Errors
    /// When it isn't known what it did.
    pub async fn run(&self, call: &Call, keys: &Keys, deadline: Instant) -> Result<Vec<i64>, StoreError> {
        self.counted(async {
            let _admitted = self.admission.admit()?;
            self.calls.store().run(call, keys, deadline).await
        })
        .await
    }

    /// Whether a script ran lately, or why not.
    ///
    /// # Errors
    /// With the reason.
    pub fn ready(&self) -> Result<(), StoreError> {
        self.calls.store().ready()
    }

    /// Adds what the store counts to what Prometheus is told.
    pub fn register(&self, registry: &mut Registry) {
        self.stats.register(registry);
        registry.register_collector(Box::new(servers::Gauges::of(self)));
    }

    /// How long the stages of calls take.
    pub(crate) const fn stages(&self) -> &Stages {
        &self.stats.stages
    }

    /// The servers that are known, and how each is.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        self.calls.store().servers()
    }

    async fn counted<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        let done = call.await;
        if let Err(error) = &done {
            self.stats.failed(error);
        }
        done
    }
}

fn backend(config: &config::Store) -> Result<Backend, StoreError> {
    let settings = Settings { timeout: config.timeout, prefix: config.prefix.clone(), links: config.connections.get() };
    let connector = Arc::new(Connector::new(config)?);
    let fixed = |server, at| Origin::fixed(&connector, server, at);
    let origin = match &config.topology {
        config::Topology::Memory => {
            tracing::warn!(
                "limits are kept in this process: no other replica shares them, and nothing outlives a restart"
            );
            return Ok(Backend::Memory(Memory::new(clock::machine_ms)?));
        }
        config::Topology::Cluster { seeds } => {
            return Ok(Backend::Cluster(Cluster::open(seeds, Members::new(connector, settings))));
        }
        config::Topology::Sentinel { sentinels, master } => {
            Sentinels::new(sentinels, master, Arc::clone(&connector)).map(Origin::Sentinels)
        }
        config::Topology::Server(address) => fixed(Endpoint::Tcp(address.clone()), address.to_string()),
        config::Topology::Unix(path) => fixed(Endpoint::Unix(path.clone()), format!("unix:{}", path.display())),
    };
    let origin = Arc::new(origin?);
    let prefix = settings.prefix.clone();
    let probe: Arc<dyn Fn() -> _ + Send + Sync> = {
        let turn = AtomicU32::new(0);
        Arc::new(move || probe::take(&prefix, turn.fetch_add(1, Ordering::Relaxed) % probe::KEYS))
    };
    Ok(Backend::Server(Node::start(settings.links, settings.timeout, |place| Keeper {
        origin: Arc::clone(&origin),
        probe: Arc::clone(&probe),
        patience: settings.timeout,
        place,
        in_cluster: false,
    })))
}

#[cfg(test)]
mod tests;
