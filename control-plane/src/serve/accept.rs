//! The accept loop of one listener.

use std::{io, sync::Arc, time::Duration};

use axum::Router;
use prometheus_client::metrics::gauge::Gauge;
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    Phase, connection,
    listener::{Listener, Stream},
};
use crate::{api, renewed::Renewed};

/// The pause after a failed accept. Out of file descriptors is the usual reason: the connection stays queued and the
/// next attempt would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Without a failed accept for this long, the next one is news and logged again: near a bound, accepts fail and succeed
/// by turns.
const QUIET: Duration = Duration::from_secs(10);

/// The longest that requests in flight may take to finish once nothing new is accepted.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Connections that are too many and still get an answer, which says so; the rest are closed at once.
const FULL_CONNECTIONS: usize = 16;

/// How long such a connection may take.
const FULL_TIMEOUT: Duration = Duration::from_secs(1);

/// A listener and what its connections need.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) listener: Listener,
    /// What it shows to callers, where it speaks TLS.
    pub(super) tls: Option<Renewed<ServerConfig>>,
    /// What answers.
    pub(super) router: Router,
    /// Connections at once.
    pub(super) max_connections: usize,
    /// How many there are, for metrics.
    pub(super) open: Gauge,
}

/// Accepts and serves connections until [`Phase::Closing`], then lets them finish.
pub(super) async fn accept(front: Front, mut phase: watch::Receiver<Phase>) {
    let Front { listener, tls, router, max_connections, open } = front;
    let mut connections = Connections {
        running: JoinSet::new(),
        free: Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS))),
        free_when_full: Arc::new(Semaphore::new(FULL_CONNECTIONS)),
        full: api::full(),
        tls,
        router,
        phase: phase.clone(),
    };
    let (mut last_failure, mut last_full) = (News::default(), News::default());
    loop {
        open.set(i64::try_from(connections.running.len()).unwrap_or(i64::MAX));
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Closing) => break,
            Some(_) = connections.running.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => {
                    if connections.serve(stream) == Admitted::Full && last_full.is_news() {
                        tracing::warn!(%listener, max_connections, "there are as many connections as there may be; refusing more");
                    }
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    if last_failure.is_news() {
                        tracing::error!(%listener, %error, "connections can't be accepted; trying on");
                    }
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    for stream in listener.close() {
        connections.serve(stream);
    }
    finish(connections.running).await;
}

/// The connections of one listener.
struct Connections {
    running: JoinSet<()>,
    free: Arc<Semaphore>,
    free_when_full: Arc<Semaphore>,
    /// What answers on connections that are too many.
    full: Router,
    tls: Option<Renewed<ServerConfig>>,
    router: Router,
    phase: watch::Receiver<Phase>,
}

#[derive(PartialEq, Eq)]
enum Admitted {
    Served,
    Full,
}

impl Connections {
    fn serve(&mut self, stream: Stream) -> Admitted {
        match stream {
            Stream::Tcp(stream) => self.serve_one(stream),
            Stream::Unix(stream) => self.serve_one(stream),
        }
    }

    fn serve_one(&mut self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Admitted {
        let tls = self.tls.as_ref().map(Renewed::get);
        let phase = self.phase.clone();
        if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
            let served = connection::serve(stream, tls, self.router.clone(), phase);
            self.running.spawn(async move {
                served.await;
                drop(permit);
            });
            return Admitted::Served;
        }
        if let Ok(permit) = Arc::clone(&self.free_when_full).try_acquire_owned() {
            let served = timeout(FULL_TIMEOUT, connection::serve(stream, tls, self.full.clone(), phase));
            self.running.spawn(async move {
                // Cut off is as good as ended.
                let _ = served.await;
                drop(permit);
            });
        }
        Admitted::Full
    }
}

/// Tells what is news from what goes on.
#[derive(Default)]
struct News(Option<Instant>);

impl News {
    fn is_news(&mut self) -> bool {
        let now = Instant::now();
        self.0.replace(now).is_none_or(|last| now.duration_since(last) > QUIET)
    }
}

async fn finish(mut connections: JoinSet<()>) {
    let all_done = async { while connections.join_next().await.is_some() {} };
    if timeout(FINISH_TIMEOUT, all_done).await.is_err() {
        tracing::warn!(connections = connections.len(), "cut off: still busy after {FINISH_TIMEOUT:?}");
        connections.shutdown().await;
    }
}

/// The peer gave up between connecting and being accepted: nothing is wrong with the listener.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
