//! From a configuration to a service that answers, and from a signal to its end.

mod accept;
mod connection;
mod descriptors;
mod inherited;
mod listener;
mod phase;
mod signals;
mod stall;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::ServerConfig;
use tokio::sync::watch;

use crate::{
    api::{self, App, EventStreams, Guard, Hosts, RateLimitStats},
    config::{Address, Config, FileError, ServerTls, ServerTlsError},
    history::History,
    limiter::Limiter,
    metrics::{Decisions, Metrics},
    policies::Live,
    renewed::Renewed,
    store::{Store, StoreError},
    top::Top,
    trace::Traces,
};
use accept::Front;
use inherited::InheritedSocket;
use listener::Listener;

pub use inherited::{Inherited, InheritedError};
pub use phase::Phase;
pub use signals::Signals;

/// A service whose listeners are open: connections wait until it runs.
#[derive(Debug)]
pub struct Server {
    data: Front,
    admin: Front,
    app: Arc<App>,
    policies: Live,
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
    /// A socket that was passed is one that the configuration can't be meant for.
    #[error(
        "admin.listen: other machines can reach {0}, where the socket that was passed listens, so admin.token is \
         required; set it, for example token: ${{SLUICEGATE_ADMIN_TOKEN}}"
    )]
    NoToken(Address),
    /// The files of a listener's TLS changed since they were checked.
    #[error(transparent)]
    Tls(#[from] ServerTlsError),
    /// A file of tokens changed since it was checked.
    #[error("token_file: {0}")]
    Token(#[from] FileError),
    /// The store's client can't be made of this URL.
    #[error("store: {0}")]
    Store(StoreError),
}

impl Server {
    /// Starts to connect to the store, which need not be up, and opens the listeners, but for those whose sockets were
    /// passed.
    ///
    /// # Errors
    /// When an address can't be listened on.
    pub async fn bind(config: Config, inherited: Inherited, traces: Traces) -> Result<Self, BindError> {
        let store = Store::open(&config.store).map_err(BindError::Store)?;
        if config.reuse_port || inherited.data.is_some() {
            ready(&store).await;
        }
        let data = listener("listen", &config.listen, config.reuse_port, inherited.data).await?;
        let admin = listener("admin.listen", &config.admin.listen, config.reuse_port, inherited.admin).await?;
        if config.admin.token.is_none() && !admin.address().is_local() {
            return Err(BindError::NoToken(admin.address().clone()));
        }
        let max_connections = descriptors::data_connections(config.max_connections.get());
        tracing::info!(
            %data,
            %admin,
            store = %config.store,
            policies = config.policies.len(),
            policies_version = %config.policies.version(),
            traces = traces.are_on(),
            version = env!("CARGO_PKG_VERSION"),
            "listening"
        );
        let (phase, receiver) = watch::channel(Phase::Serving);
        let refunds = config.allows_refunds(data.address());
        let policies = Live::new(config.policies);
        let (decisions, rate_limit_stats) = (Decisions::default(), RateLimitStats::default());
        let mut metrics = Metrics::new(&store, &policies, &decisions, traces.counts());
        rate_limit_stats.register(metrics.sub_registry("rate_limit_service"));
        let data_guard = Guard::data(config.token.as_ref())?;
        let admin_guard = Guard::admin(config.admin.token.as_ref(), config.admin.metrics_token.as_ref())?;
        let limiter = Limiter {
            policies: policies.clone(),
            prefix: config.store.prefix,
            pepper: config.key_pepper,
            store,
            decisions,
            top: Top::new(Instant::now()),
        };
        let app = Arc::new(App {
            limiter,
            rate_limit_stats,
            metrics,
            history: History::default(),
            streams: EventStreams::default(),
            started: Instant::now(),
            traces,
            store_timeout: config.store.timeout,
            refunds,
            phase: receiver,
        });
        let requests = app.metrics.requests.clone();
        // Only behind a token, or where no browser can connect, may the listener have any name.
        let hosts = match admin.address() {
            Address::Tcp(_) if config.admin.token.is_none() => Hosts::Local,
            _ => Hosts::Any,
        };
        let admin_router = api::for_own_page(api::admin(Arc::clone(&app)), hosts);
        // A page could give back, or get somebody banned, without seeing the answer.
        let data_router = api::for_proxies(api::data(Arc::clone(&app)));
        let data = Front {
            listener: data,
            tls: config.tls.map(|tls| certificates("tls", tls)).transpose()?,
            router: api::counted(api::guarded(data_router, data_guard), requests.of("data")),
            max_connections,
            open: requests.connections("data"),
        };
        let admin = Front {
            listener: admin,
            tls: config.admin.tls.map(|tls| certificates("admin.tls", tls)).transpose()?,
            router: api::counted(api::guarded(admin_router, admin_guard), requests.of("admin")),
            max_connections: ADMIN_CONNECTIONS,
            open: requests.connections("admin"),
        };
        Ok(Self { data, admin, app, policies, phase, drain: config.drain })
    }

    /// Where checks are answered; the real port where the configuration says 0.
    #[must_use]
    pub const fn data_address(&self) -> &Address {
        self.data.listener.address()
    }

    /// Where everything else is; the real port where the configuration says 0.
    #[must_use]
    pub const fn admin_address(&self) -> &Address {
        self.admin.listener.address()
    }

    /// The policies in use, to put others in their place.
    #[must_use]
    pub fn policies(&self) -> &Live {
        &self.policies
    }

    /// Answers until `stop`, then drains: unready at once, and connections are told to go elsewhere; everything is
    /// still answered for the configured time; then nothing new is accepted, and what is in flight finishes.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { data, admin, app, phase, drain, .. } = self;
        let data = accept::accept(data, phase.subscribe());
        let admin = accept::accept(admin, phase.subscribe());
        let served = async {
            tokio::join!(data, admin);
            app.traces.clone().stop().await;
        };
        let phases = async {
            stop.await;
            tracing::info!(?drain, "draining");
            phase.send_replace(Phase::Draining);
            tokio::time::sleep(drain).await;
            phase.send_replace(Phase::Closing);
        };
        tokio::select! {
            _ = async { tokio::join!(served, phases) } => {}
            never = app.history.keep(&app.limiter.decisions) => never,
        }
        tracing::info!("stopped");
    }
}

/// Connections of the admin listener at once: people, a monitoring system, health checks.
const ADMIN_CONNECTIONS: usize = 100;

/// The longest that a process waits for its store before it takes connections which another process could have.
const TAKEOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Waits until checks are decided: who replaces another process must not fail those that it takes from it. Without a
/// store the service starts all the same.
async fn ready(store: &Store) {
    let ready = async {
        while store.ready().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let _ = tokio::time::timeout(TAKEOVER_TIMEOUT, ready).await;
}

async fn listener(
    field: &'static str,
    address: &Address,
    reuse_port: bool,
    inherited: Option<InheritedSocket>,
) -> Result<Listener, BindError> {
    let listener = match inherited {
        Some(socket) => Listener::inherit(socket),
        None => Listener::bind(address, reuse_port).await,
    };
    listener.map_err(|error| BindError::Listen { field, address: address.clone(), error })
}

fn certificates(field: &'static str, tls: ServerTls) -> Result<Renewed<ServerConfig>, ServerTlsError> {
    let files = tls.files().map(str::to_owned).collect();
    Renewed::of_files(field, files, move || tls.load())
}
