//! From a configuration to a service that answers, and from a signal to its end.

mod accept;
mod connection;
mod listener;
mod phase;
mod signals;

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use crate::{
    api::{self, App},
    config::{Address, Config},
    limiter::Limiter,
    metrics::Metrics,
    policies::Live,
    store::{Store, StoreError},
};
use listener::Listener;

pub use phase::Phase;
pub use signals::Signals;

/// A service whose listeners are open: connections wait until it runs.
#[derive(Debug)]
pub struct Server {
    data: Listener,
    admin: Listener,
    app: Arc<App>,
    phase: watch::Sender<Phase>,
    drain: Duration,
}

/// Why a service can't start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A listener's address can't be had.
    #[error("{field}: can't listen on {address}: {error}")]
    Listen {
        /// The configuration's field.
        field: &'static str,
        /// The address.
        address: Address,
        /// Why.
        error: std::io::Error,
    },
    /// The store's client can't be made of this URL.
    #[error("store: {0}")]
    Store(StoreError),
}

impl Server {
    /// Opens the listeners and starts to connect to the store, which need not be up.
    ///
    /// # Errors
    /// When an address can't be listened on.
    pub async fn bind(config: Config) -> Result<Self, BindError> {
        let data = bind("listen", config.listen).await?;
        let admin = bind("admin.listen", config.admin.listen).await?;
        let store = Store::open(&config.store).map_err(BindError::Store)?;
        tracing::info!(
            %data,
            %admin,
            store = %config.store,
            policies = config.policies.len(),
            policies_version = %config.policies.version(),
            version = env!("CARGO_PKG_VERSION"),
            "listening"
        );
        let (phase, receiver) = watch::channel(Phase::Serving);
        let policies = Live::new(config.policies);
        let metrics = Metrics::new(&store, &policies);
        let limiter = Limiter { policies, prefix: config.store.prefix, pepper: config.key_pepper, store };
        let app = Arc::new(App {
            limiter,
            metrics,
            store_timeout: config.store.timeout,
            refunds: config.refunds,
            phase: receiver,
        });
        Ok(Self { data, admin, app, phase, drain: config.drain })
    }

    /// Where checks are answered; the real port where the configuration says 0.
    #[must_use]
    pub const fn data_address(&self) -> &Address {
        self.data.address()
    }

    /// Where everything else is; the real port where the configuration says 0.
    #[must_use]
    pub const fn admin_address(&self) -> &Address {
        self.admin.address()
    }

    /// The policies in use, to put others in their place.
    #[must_use]
    pub fn policies(&self) -> &Live {
        &self.app.limiter.policies
    }

    /// Answers until `stop`, then drains: unready at once, and connections are told to go elsewhere; everything is
    /// still answered for the configured time; then nothing new is accepted, and what is in flight finishes.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { data, admin, app, phase, drain } = self;
        let accept = |listener, router| accept::accept(listener, router, phase.subscribe());
        let data = accept(data, api::data(Arc::clone(&app)));
        let admin = accept(admin, api::admin(app));
        let phases = async {
            stop.await;
            tracing::info!(?drain, "draining");
            phase.send_replace(Phase::Draining);
            tokio::time::sleep(drain).await;
            phase.send_replace(Phase::Closing);
        };
        tokio::join!(data, admin, phases);
        tracing::info!("stopped");
    }
}

async fn bind(field: &'static str, address: Address) -> Result<Listener, BindError> {
    Listener::bind(&address).await.map_err(|error| BindError::Listen { field, address, error })
}
