//! Keeps one working link to a server: connects, probes, replaces.

use std::{sync::Arc, time::Duration};

use sluicegate_lua::Call;
use tokio::time::{Instant, sleep};

use super::{
    StoreError,
    backoff::Backoff,
    failure::Failure,
    link::{Health, Link, Route},
    node::{LinkState, Place},
    origin::Origin,
    probe, survey,
};

/// How often a link is probed, and how soon readiness follows the store.
const PROBE_EVERY: Duration = Duration::from_millis(500);
/// Every so many probes the link asks whether the server is still the one that counts.
const PROBES_PER_QUESTION: u32 = 4;
/// A link that was up for less is made again only after a pause: a server that takes and then hangs up, again and again,
/// must not be called on in a loop.
const BLINK: Duration = Duration::from_millis(50);
/// The least time for connecting or a probe: a store that answers later than its callers wait is slow, not gone.
const MIN_PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most, however patient calls are: readiness must not wait for a minute to see that a store is gone.
const MAX_PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Keeps one of a node's links.
pub(super) struct Keeper {
    pub(super) origin: Arc<Origin>,
    /// The take that shows that the server takes.
    pub(super) probe: Arc<dyn Fn() -> Call + Send + Sync>,
    /// How long a call waits for the store (`store.timeout`).
    pub(super) patience: Duration,
    pub(super) place: Place,
    /// Whether the server is one of a cluster's, which answers calls for others' slots with redirects.
    pub(super) in_cluster: bool,
}

impl Keeper {
    /// Runs until the node is dropped.
    pub(super) async fn keep(self) {
        let mut backoff = Backoff::default();
        while !self.place.links.is_closed() {
            let (error, was_up_for) = match self.open().await {
                Ok((link, at)) => self.watch_over(&link, &at, &mut backoff).await,
                Err(error) => (error, None),
            };
            match was_up_for {
                // Calls wait for the first attempt to replace it, since that may take but a ms.
                Some(was_up_for) if was_up_for > BLINK => {
                    tracing::debug!(%error, link = self.place.index, "link lost");
                    self.set(LinkState::Joining);
                    continue;
                }
                _ => self.down(error),
            }
            sleep(backoff.next()).await;
        }
    }

    async fn open(&self) -> Result<(Arc<Link>, String), StoreError> {
        let deadline = Instant::now() + self.probe_timeout();
        let (client, at) = self.origin.find(deadline).await?;
        self.place.news.found_at(&at);
        let link = Link::open(&client, self.patience, deadline).await?;
        if self.place.index == 0 {
            survey::report(&link, &self.place.news, &at, self.in_cluster, deadline).await;
        }
        if !self.in_cluster {
            // One of a cluster's servers has but some of the keys, and would seem to work.
            for _ in 0..probe::KEYS {
                self.run_probe(&link).await.map_err(|trouble| match trouble {
                    Trouble::Lost(error) | Trouble::Later(error) => error,
                })?;
            }
        }
        Ok((Arc::new(link), at))
    }

    /// Puts the link to use whenever takes on it are answered in time. Ends when it must be replaced, with the reason and
    /// how long it was last in use; none when it never was, or was silent when it ended.
    async fn watch_over(&self, link: &Arc<Link>, at: &str, backoff: &mut Backoff) -> (StoreError, Option<Duration>) {
        loop {
            if let Err(error) = self.answers_in_time(link, backoff).await {
                return (error, None);
            }
            let up = Instant::now();
            link.recovered();
            self.set(LinkState::Up(Arc::clone(link)));
            let trouble = tokio::select! {
                health = link.unusable() => match health {
                    Health::Lost(error) => Trouble::Lost(error),
                    Health::Silent | Health::Good => Trouble::Later(StoreError::Timeout),
                },
                trouble = self.check(link, at) => trouble,
                () = self.place.links.closed() => Trouble::Lost(StoreError::Unavailable("stopping".to_owned())),
            };
            match trouble {
                Trouble::Lost(error) => {
                    if up.elapsed() > BLINK {
                        backoff.reset();
                    }
                    return (error, Some(up.elapsed()));
                }
                Trouble::Later(error) => self.down(error),
            }
        }
    }

    /// Waits until a probe is answered as fast as calls need it. A server that is slower would make callers wait in
    /// vain; one that doesn't answer at all is an error.
    async fn answers_in_time(&self, link: &Link, backoff: &mut Backoff) -> Result<(), StoreError> {
        while !self.place.links.is_closed() {
            let asked = Instant::now();
            let late = match self.run_probe(link).await {
                Ok(()) if asked.elapsed() <= self.patience => return Ok(()),
                Ok(()) => StoreError::Slow(self.patience),
                Err(Trouble::Later(error)) => error,
                Err(Trouble::Lost(error)) => return Err(error),
            };
            self.down(late);
            sleep(backoff.next()).await;
        }
        Ok(())
    }

    /// Looks after a link that is up; ends when something is wrong with it.
    async fn check(&self, link: &Link, at: &str) -> Trouble {
        loop {
            for _ in 0..PROBES_PER_QUESTION {
                sleep(PROBE_EVERY).await;
                if let Err(trouble) = self.run_probe(link).await {
                    return trouble;
                }
                self.place.news.tell(&self.place.links.borrow(), &self.origin);
            }
            if let Some(elsewhere) = self.origin.moved(at, Instant::now() + self.probe_timeout()).await {
                return Trouble::Lost(StoreError::Unavailable(format!("the master is now {elsewhere}")));
            }
        }
    }

    async fn run_probe(&self, link: &Link) -> Result<(), Trouble> {
        let deadline = Instant::now() + self.probe_timeout();
        match link.run(&(self.probe)(), Route::Owner, deadline).await {
            // A cluster's node that has no slot of its own yet answers in its way.
            Err(Failure::Moved(_) | Failure::Ask(_)) if self.in_cluster => Ok(()),
            Ok(_) => Ok(()),
            Err(failure @ (Failure::Moved(_) | Failure::Ask(_) | Failure::Later(_))) => {
                Err(Trouble::Later(failure.into_error()))
            }
            Err(Failure::Elsewhere(error) | Failure::Final(error)) => Err(Trouble::Lost(error)),
        }
    }

    fn probe_timeout(&self) -> Duration {
        self.patience.clamp(MIN_PROBE_TIMEOUT, MAX_PROBE_TIMEOUT)
    }

    /// Calls fail at once from now on, so none of them should say that it waited.
    fn down(&self, error: StoreError) {
        self.set(LinkState::Down(error.at_once()));
    }

    fn set(&self, new: LinkState) {
        self.place.links.send_modify(|links| {
            if let Some(state) = links.get_mut(self.place.index) {
                *state = new;
            }
            self.place.news.tell(links, &self.origin);
        });
    }
}

/// What is wrong with a link.
enum Trouble {
    /// It must be replaced.
    Lost(StoreError),
    /// The server is there, but doesn't take yet.
    Later(StoreError),
}
