//! The accept loop of one listener.

use std::{io, time::Duration};

use axum::Router;
use tokio::{
    sync::watch,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    Phase, connection,
    listener::{Listener, Stream},
};

/// The pause after a failed accept. Out of file descriptors is the usual reason: the connection stays queued and the
/// next attempt would fail at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Without a failed accept for this long, the next one is news and logged again: near a bound, accepts fail and succeed
/// by turns.
const QUIET: Duration = Duration::from_secs(10);

/// The longest that requests in flight may take to finish once nothing new is accepted.
const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts and serves connections until [`Phase::Closing`], then lets them finish.
pub(super) async fn accept(listener: Listener, router: Router, mut phase: watch::Receiver<Phase>) {
    let mut connections = JoinSet::new();
    let phase_of_connections = phase.clone();
    let mut last_failure = None;
    loop {
        tokio::select! {
            _ = phase.wait_for(|phase| *phase == Phase::Closing) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok(stream) => {
                    let (router, phase) = (router.clone(), phase_of_connections.clone());
                    match stream {
                        Stream::Tcp(stream) => connections.spawn(connection::serve(stream, router, phase)),
                        Stream::Unix(stream) => connections.spawn(connection::serve(stream, router, phase)),
                    };
                }
                Err(error) if is_of_connection(&error) => {}
                Err(error) => {
                    if last_failure.is_none_or(|last: Instant| last.elapsed() > QUIET) {
                        tracing::error!(%listener, %error, "connections can't be accepted; trying on");
                    }
                    last_failure = Some(Instant::now());
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    finish(connections).await;
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
