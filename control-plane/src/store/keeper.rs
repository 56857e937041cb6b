//! Keeps one working link to Redis: connects, probes, replaces.

use std::{sync::Arc, time::Duration};

use redis::Client;
use sluicegate_lua::Call;
use tokio::{
    sync::watch,
    time::{Instant, sleep},
};

use super::{StoreError, link::Link};

/// How often a quiet link is probed, and how soon readiness follows the store.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// The least time for connecting or a probe: a store that answers later than its callers wait is slow, not gone.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after the first failed attempt; each further one doubles it.
const FIRST_BACKOFF: Duration = Duration::from_millis(10);
/// The longest pause: the store is found again within about this time.
const MAX_BACKOFF: Duration = Duration::from_millis(250);

/// The link there is, or why there is none.
pub(super) type LinkState = Result<Arc<Link>, StoreError>;

/// Runs until nobody watches the state any more.
pub(super) async fn keep(client: Client, probe: Call, state: watch::Sender<LinkState>) {
    let mut backoff = FIRST_BACKOFF;
    while !state.is_closed() {
        match Link::open(&client, &probe, PROBE_TIMEOUT).await {
            Ok(link) => {
                tracing::info!("store connected");
                backoff = FIRST_BACKOFF;
                let link = Arc::new(link);
                set(&state, Ok(Arc::clone(&link)));
                let error = lost(&link, &probe, &state).await;
                tracing::warn!(%error, "store lost");
                set(&state, Err(error));
            }
            Err(error) => {
                // One line for each change, not for each attempt.
                let known = state.borrow().as_ref().is_err_and(|known| *known == error);
                if !known {
                    tracing::warn!(%error, "store not reachable, trying on");
                    set(&state, Err(error));
                }
                // Half to whole, so that many services don't come back in step.
                sleep(backoff.mul_f64(0.5 + fastrand::f64() / 2.0)).await;
                backoff = (backoff * 2).min(MAX_BACKOFF);
            }
        }
    }
}

fn set(state: &watch::Sender<LinkState>, new: LinkState) {
    state.send_modify(|state| *state = new);
}

/// Waits until the link is no longer usable, and says why.
async fn lost(link: &Link, probe: &Call, state: &watch::Sender<LinkState>) -> StoreError {
    loop {
        tokio::select! {
            () = link.broken() => return StoreError::Unavailable("the connection broke".into()),
            () = state.closed() => return StoreError::Unavailable("stopping".into()),
            () = sleep(PROBE_EVERY) => {}
        }
        if let Err(error) = link.run(probe, Instant::now() + PROBE_TIMEOUT).await {
            return error;
        }
    }
}
