//! A Redis Cluster: each call goes to the node that has its slot, over links like those to a single server.
//!
//! Not the client library's own cluster connection: it makes a call again after a lost reply (16 times by default), sends
//! ASKING apart from the command that it is for, and holds back the calls of all slots while it looks for one.

mod map;
mod members;
mod refresh;
mod slot;
mod view;

use std::{sync::Arc, time::Duration};

use sluicegate_lua::Call;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, timeout_at},
};

use super::{
    StoreError,
    backoff::Backoff,
    failure::{Failure, Redirect},
    link::Route,
    servers::Server,
};
use crate::config::HostPort;
use map::{Member, SlotMap};
pub(super) use members::Members;
pub(super) use slot::Slot;

/// How many redirects a call follows in a row: far more than a cluster that is well ever needs.
const MAX_HOPS: usize = 16;
/// The first and the longest pause before a call is made again that the cluster couldn't take: a slot's last keys move
/// within ms.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// The nodes of a cluster, and which of them serves which slot.
#[derive(Debug)]
pub(super) struct Cluster {
    map: watch::Sender<SlotMap>,
    members: Arc<Members>,
    /// Told when the map doesn't fit.
    stale: Arc<Notify>,
}

impl Cluster {
    /// The cluster that any of the seeds belongs to; none of them need be up. Must be called inside a Tokio runtime.
    pub(super) fn open(seeds: &[HostPort], members: Members) -> Self {
        let (map, _) = watch::channel(SlotMap::Joining);
        let (members, stale) = (Arc::new(members), Arc::new(Notify::new()));
        let refresher = refresh::Refresher {
            seeds: seeds.to_vec(),
            map: map.clone(),
            members: Arc::clone(&members),
            stale: Arc::clone(&stale),
        };
        tokio::spawn(refresher.run());
        Self { map, members, stale }
    }

    /// Runs a call on the slot of its keys before `deadline`, as often as nodes prove that they didn't.
    pub(super) async fn run(&self, call: &Call, slot: Slot, deadline: Instant) -> Result<Vec<i64>, StoreError> {
        let mut member = self.owner(slot, deadline).await?;
        let mut route = Route::Owner;
        let mut backoff = Backoff::new(PAUSES[0], PAUSES[1]);
        let mut hops = 0;
        let failure = loop {
            let failure = match member.node.run(call, route, deadline).await {
                Ok(reply) => return Ok(reply),
                Err(failure) => failure,
            };
            match &failure {
                Failure::Moved(_) | Failure::Ask(_) if hops == MAX_HOPS => break failure,
                Failure::Moved(to) => {
                    member = self.moved(slot, &member, to);
                    route = Route::Owner;
                    hops += 1;
                }
                Failure::Ask(to) => {
                    member = self.members.at(&of(to, &member.address), &self.map);
                    route = Route::Asking;
                    hops += 1;
                }
                Failure::Later(_) | Failure::Elsewhere(_) => {
                    self.stale.notify_one();
                    let pause = backoff.next();
                    if Instant::now() + pause >= deadline {
                        break failure;
                    }
                    sleep(pause).await;
                    member = self.owner(slot, deadline).await?;
                    route = Route::Owner;
                    hops = 0;
                }
                Failure::Final(_) => {
                    self.stale.notify_one();
                    break failure;
                }
            }
        };
        Err(match failure {
            Failure::Moved(to) | Failure::Ask(to) => {
                StoreError::Refused(format!("redirected {MAX_HOPS} times, last to {}", of(&to, &member.address)))
            }
            other => other.into_error(),
        })
    }

    /// Whether a script ran lately on a part of the cluster, or why on none: while one part is down the others decide.
    /// What a living node says of the cluster tells more than that another is out of reach.
    pub(super) fn ready(&self) -> Result<(), StoreError> {
        let map = self.map.borrow();
        let mut why = match &*map {
            SlotMap::Joining => StoreError::Unavailable("connecting".to_owned()),
            SlotMap::Down(error) => return Err(error.clone()),
            SlotMap::Known(_) => StoreError::Unavailable("no node of the cluster serves a slot".to_owned()),
        };
        for (member, _) in map.masters() {
            match member.node.ready() {
                Ok(()) => return Ok(()),
                Err(error) if !matches!(why, StoreError::Refused(_)) => why = error,
                Err(_) => {}
            }
        }
        Err(why)
    }

    /// The nodes that there are links to, in order of address.
    pub(super) fn servers(&self) -> Vec<Server> {
        let mut servers: Vec<_> = self.members.all().iter().filter_map(|member| member.node.server()).collect();
        servers.sort_by(|one, other| one.address.cmp(&other.address));
        servers
    }

    /// The node that has a slot; waits for the first map only.
    async fn owner(&self, slot: Slot, deadline: Instant) -> Result<Arc<Member>, StoreError> {
        if let Some(owner) = self.map.borrow().owner(slot) {
            return Ok(Arc::clone(owner));
        }
        let mut map = self.map.subscribe();
        let known = timeout_at(deadline, map.wait_for(|map| !matches!(map, SlotMap::Joining))).await;
        let known = known.map_err(|_| StoreError::Timeout)?;
        let known = known.map_err(|_| StoreError::Unavailable("the service is stopping".to_owned()))?;
        match (&*known, known.owner(slot)) {
            (_, Some(owner)) => Ok(Arc::clone(owner)),
            (SlotMap::Down(error), None) => Err(error.clone()),
            (_, None) => {
                self.stale.notify_one();
                Err(StoreError::Unavailable("no node of the cluster serves this slot".to_owned()))
            }
        }
    }

    /// Follows a redirect, and sends the slot's next calls there too.
    fn moved(&self, slot: Slot, from: &Member, to: &Redirect) -> Arc<Member> {
        let member = self.members.at(&of(to, &from.address), &self.map);
        self.map.send_if_modified(|map| {
            // Whoever was sent the same way before has changed it already.
            let ours = map.owner(slot).is_some_and(|owner| owner.address == from.address);
            if ours {
                map.assign(slot, Arc::clone(&member));
            }
            ours
        });
        self.stale.notify_one();
        member
    }
}

fn of(to: &Redirect, from: &HostPort) -> HostPort {
    let host = if to.host.is_empty() { &from.host } else { &to.host };
    HostPort { host: host.clone(), port: to.port }
}
