//! A TCP proxy that spoils the way to a server: what a network does, and a reply cut off at a chosen moment.

mod connection;
mod cut;
mod listener;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result};
use tokio::{
    runtime::{Builder, Runtime},
    sync::{mpsc, oneshot, watch},
};

use self::{cut::Cut, listener::Order};
use crate::{Port, until};

/// How the proxy treats connections, those that exist and new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Everything passes at once.
    Pass,
    /// As a server that is down: the kernel refuses new connections, and existing ones are closed.
    Refuse,
    /// As a network that drops packets: connecting hangs, and what is sent on existing connections doesn't arrive while
    /// this lasts. Afterwards it does, as TCP sends again what got lost.
    Drop,
    /// Each byte takes this much longer, in each direction; as many as before can be under way.
    Delay(Duration),
    /// What the server sends arrives byte by byte with this pause between two.
    Trickle(Duration),
}

/// A proxy on a leased port of 127.0.0.1, on a thread of its own, so that neither a test that blocks nor the load on
/// its runtime changes what the proxy does.
#[derive(Debug)]
pub struct FaultProxy {
    port: Port,
    shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
    /// Taken on drop, which ends every connection.
    runtime: Option<Runtime>,
}

/// What the proxy's tasks and its owner both see.
#[derive(Debug)]
struct Shared {
    traffic: watch::Sender<Traffic>,
    cut: Mutex<Option<Cut>>,
    cuts: AtomicUsize,
    accepted: AtomicUsize,
    open: AtomicUsize,
}

impl FaultProxy {
    /// A proxy in front of the port `target` of 127.0.0.1 that lets everything pass.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(target: u16) -> Result<Self> {
        Self::start_with(target, Traffic::Pass).await
    }

    /// A proxy that never knew better.
    ///
    /// # Errors
    /// As [`FaultProxy::start`].
    pub async fn start_with(target: u16, traffic: Traffic) -> Result<Self> {
        let port = Port::lease()?;
        let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("fault-proxy").enable_all().build()?;
        let shared = Arc::new(Shared {
            traffic: watch::channel(traffic).0,
            cut: Mutex::new(None),
            cuts: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        });
        let (orders, received) = mpsc::unbounded_channel();
        runtime.spawn(listener::run(port.number(), target, Arc::clone(&shared), received));
        let proxy = Self { port, shared, orders, runtime: Some(runtime) };
        proxy.set(traffic).await?;
        Ok(proxy)
    }

    /// Treats connections like this from now on. When this returns, the listener does as told, and with
    /// [`Traffic::Refuse`] every connection is closed.
    ///
    /// # Errors
    /// When the listener can't be opened again.
    pub async fn set(&self, traffic: Traffic) -> Result<()> {
        let (done, obeyed) = oneshot::channel();
        self.orders.send(Order { traffic, done }).ok().context("the proxy is gone")?;
        obeyed.await.context("the proxy is gone")?.with_context(|| format!("port {}", self.port()))?;
        if traffic == Traffic::Refuse {
            let closed = async || (self.open() == 0).then_some(());
            until("the proxy's connections to be closed", Duration::from_secs(10), closed).await?;
        }
        Ok(())
    }

    /// Cuts one reply off: once a client has sent `needle` and it was passed on, the next that the server sends on that
    /// connection is passed on up to `keep_bytes`, and then both sides are closed. Strikes once; a new order takes the
    /// place of one that hasn't struck.
    ///
    /// # Panics
    /// When `needle` is empty or longer than 1 KiB.
    pub fn cut_reply(&self, needle: &[u8], keep_bytes: usize) {
        *self.shared.cut.lock().unwrap() = Some(Cut::new(needle, keep_bytes));
    }

    /// How many replies were cut off so far.
    #[must_use]
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(Ordering::SeqCst)
    }

    /// How many connections were accepted so far.
    #[must_use]
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open now.
    #[must_use]
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }

    /// The proxy's port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.number()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for it would panic in a test's own runtime.
            runtime.shutdown_background();
        }
    }
}
