//! Keeps the map of slots true.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep},
};

use super::{map::SlotMap, members::Members, slot::Slot, view::View};
use crate::{
    config::HostPort,
    store::{StoreError, backoff::Backoff, connect::Endpoint, link::Link, votes::most_said},
};

/// How often the map is asked for when all is well: redirects tell of changes before.
const EVERY: Duration = Duration::from_secs(10);
/// The least pause between two askings, however many calls find the map wrong.
const SPACING: Duration = Duration::from_millis(50);
/// How long the nodes may take to say who serves what.
const TIMEOUT: Duration = Duration::from_millis(500);
/// How long connecting to a seed may take.
const SEED_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks the nodes, or the seeds when no node is left, and changes the map.
pub(super) struct Refresher {
    pub(super) seeds: Vec<HostPort>,
    pub(super) map: watch::Sender<SlotMap>,
    pub(super) members: Arc<Members>,
    pub(super) stale: Arc<Notify>,
}

impl Refresher {
    /// Runs as long as the runtime does: a store is opened once.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::default();
        let mut applied = View::default();
        let mut seeds_known = false;
        loop {
            match self.ask().await {
                Ok(view) => {
                    if !std::mem::replace(&mut seeds_known, true) {
                        tokio::spawn(tell_of_dead_seeds(self.seeds.clone(), Arc::clone(&self.members)));
                    }
                    self.apply(&view, &mut applied);
                    if self.all_is_well(&view) {
                        backoff.reset();
                        tokio::select! {
                            () = self.stale.notified() => {}
                            () = sleep(EVERY) => {}
                        }
                        sleep(SPACING).await;
                        continue;
                    }
                }
                // A map that was good may still be; its nodes' own links say which of them are gone.
                Err(error) if matches!(*self.map.borrow(), SlotMap::Known(_)) => {
                    tracing::debug!(%error, "no node says who serves which slots");
                }
                Err(error) => self.give_up_for_now(error),
            }
            sleep(backoff.next()).await;
        }
    }

    async fn ask(&self) -> Result<View, StoreError> {
        let deadline = Instant::now() + TIMEOUT;
        let members = self.members.all().into_iter().filter(|member| member.node.ready().is_ok());
        let members: Vec<_> = members.collect();
        if !members.is_empty() {
            let questions = members.into_iter().map(|member| async move {
                let link = member.node.link(deadline).await?;
                View::of(&link, &member.address.host, deadline).await
            });
            if let Ok(view) = most_said(questions, deadline).await {
                return Ok(view);
            }
        }
        let deadline = Instant::now() + SEED_TIMEOUT;
        let questions = self.seeds.iter().map(|seed| {
            let client = self.members.connector.server(&Endpoint::Tcp(seed.clone()));
            let host = seed.host.clone();
            async move {
                let link = Link::open(&client?, TIMEOUT, deadline).await?;
                View::of(&link, &host, deadline).await
            }
        });
        most_said(questions.collect::<Vec<_>>(), deadline).await
    }

    /// Also when the view is the one of before: redirects may have changed the map since.
    fn apply(&self, view: &View, applied: &mut View) {
        let map = SlotMap::new(view, |address| self.members.at(address, &self.map));
        let masters = map.masters();
        self.map.send_replace(map);
        self.members.forget_all_but(&masters.iter().map(|(member, _)| Arc::clone(member)).collect::<Vec<_>>());
        // Slots that move one by one are no news each.
        if view.masters() != applied.masters() || view.covered() != applied.covered() {
            let shown: Vec<_> =
                masters.iter().map(|(member, slots)| format!("{} ({slots} slots)", member.address)).collect();
            let (masters, slots) = (shown.join(", "), view.covered());
            tracing::info!(%masters, slots, "found a cluster");
            if slots < usize::from(Slot::COUNT) {
                tracing::warn!(slots, of = Slot::COUNT, "nobody serves some of the cluster's slots");
            }
        }
        applied.clone_from(view);
    }

    fn all_is_well(&self, view: &View) -> bool {
        let masters = self.map.borrow().masters();
        view.covered() == usize::from(Slot::COUNT) && masters.iter().all(|(member, _)| member.node.ready().is_ok())
    }

    /// One line for each change, not for each attempt.
    fn give_up_for_now(&self, error: StoreError) {
        let error = error.at_once();
        let known = matches!(&*self.map.borrow(), SlotMap::Down(known) if known.reason() == error.reason());
        if !known {
            tracing::warn!(%error, "no seed says who serves which slots, trying on");
        }
        self.map.send_replace(SlotMap::Down(error));
    }
}

/// Once the cluster is found by other seeds nobody would notice one that is mistyped, until it is the only one left. So
/// each is tried once, off the way, and told of.
async fn tell_of_dead_seeds(seeds: Vec<HostPort>, members: Arc<Members>) {
    for seed in seeds {
        let deadline = Instant::now() + SEED_TIMEOUT;
        let opened = match members.connector.server(&Endpoint::Tcp(seed.clone())) {
            Ok(client) => Link::open(&client, TIMEOUT, deadline).await.map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = opened {
            let error = error.at_once();
            tracing::warn!(%seed, %error, "this seed of store.url is of no use; the cluster was found by another");
        }
    }
}
