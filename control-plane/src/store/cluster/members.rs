//! The nodes of a cluster that there are links to.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use sluicegate_lua::Call;
use tokio::{sync::watch, time::Instant};

use super::{
    map::{Member, SlotMap},
    slot::Slot,
};
use crate::{
    config::HostPort,
    store::{
        Settings,
        connect::{Connector, Endpoint},
        keeper::Keeper,
        node::Node,
        origin::Origin,
        probe,
    },
};

/// How long links are kept to a node that serves no slot: one that is about to get some is asked for them first.
const GUEST_FOR: Duration = Duration::from_secs(60);
/// How many keys are tried to find one that a node serves; a node with one slot in a hundred is almost sure to have one
/// of them.
const MAX_PROBES: u32 = 1_000;

/// The nodes that there are links to. Links end when their node is forgotten.
#[derive(Debug)]
pub(crate) struct Members {
    pub(super) connector: Arc<Connector>,
    pub(super) settings: Settings,
    known: Mutex<HashMap<HostPort, Known>>,
}

#[derive(Debug)]
struct Known {
    member: Arc<Member>,
    needed: Instant,
}

impl Members {
    pub(crate) fn new(connector: Arc<Connector>, settings: Settings) -> Self {
        Self { connector, settings, known: Mutex::default() }
    }

    /// The node at an address, which is connected to when it is new.
    pub(super) fn at(&self, address: &HostPort, map: &watch::Sender<SlotMap>) -> Arc<Member> {
        let mut known = self.lock();
        let needed = Instant::now();
        let entry = known
            .entry(address.clone())
            .or_insert_with(|| Known { member: Arc::new(self.connect(address, map)), needed });
        entry.needed = needed;
        Arc::clone(&entry.member)
    }

    /// The nodes that there are links to.
    pub(super) fn all(&self) -> Vec<Arc<Member>> {
        self.lock().values().map(|known| Arc::clone(&known.member)).collect()
    }

    /// Forgets nodes that nobody has needed for a while.
    pub(super) fn forget_all_but(&self, masters: &[Arc<Member>]) {
        self.lock().retain(|_, known| {
            known.needed.elapsed() < GUEST_FOR || masters.iter().any(|master| Arc::ptr_eq(master, &known.member))
        });
    }

    fn connect(&self, address: &HostPort, map: &watch::Sender<SlotMap>) -> Member {
        let node = match Origin::fixed(&self.connector, Endpoint::Tcp(address.clone()), address.to_string()) {
            Ok(origin) => {
                let origin = Arc::new(origin);
                let probe = self.probe(address, map.clone());
                Node::start(self.settings.links, self.settings.timeout, |place| Keeper {
                    origin: Arc::clone(&origin),
                    probe: Arc::clone(&probe),
                    patience: self.settings.timeout,
                    place,
                    in_cluster: true,
                })
            }
            Err(error) => Node::never(&address.to_string(), error),
        };
        Member { address: address.clone(), node }
    }

    /// A take on a slot that the node serves, when it serves one.
    fn probe(&self, address: &HostPort, map: watch::Sender<SlotMap>) -> Arc<dyn Fn() -> Call + Send + Sync> {
        let (address, prefix, last) = (address.clone(), self.settings.prefix.clone(), AtomicU32::new(0));
        Arc::new(move || {
            let map = map.borrow();
            let serves = |number: &u32| {
                map.owner(Slot::of(&prefix.probe_keys(*number))).is_some_and(|owner| owner.address == address)
            };
            let first = last.load(Ordering::Relaxed);
            let number = [first].into_iter().chain(0..MAX_PROBES).find(serves).unwrap_or(first);
            last.store(number, Ordering::Relaxed);
            probe::take(&prefix, number)
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<HostPort, Known>> {
        // Nothing in there is ever half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
