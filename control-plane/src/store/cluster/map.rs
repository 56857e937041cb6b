//! Which node serves which slot, as far as is known.

use std::{collections::HashMap, sync::Arc};

use super::{slot::Slot, view::View};
use crate::{
    config::HostPort,
    store::{StoreError, node::Node},
};

/// A node of the cluster.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) address: HostPort,
    pub(super) node: Node,
}

/// Who serves which slot.
#[derive(Clone, Debug)]
pub(super) enum SlotMap {
    /// Nobody has said yet.
    Joining,
    /// For each slot its master; none where no one serves it.
    Known(Vec<Option<Arc<Member>>>),
    /// Nobody could say.
    Down(StoreError),
}

impl SlotMap {
    /// The map that a view gives.
    pub(super) fn new(view: &View, mut member: impl FnMut(&HostPort) -> Arc<Member>) -> Self {
        let mut owners = vec![None; usize::from(Slot::COUNT)];
        for range in &view.ranges {
            let master = member(&range.master);
            for owner in owners.iter_mut().take(usize::from(range.last) + 1).skip(usize::from(range.first)) {
                *owner = Some(Arc::clone(&master));
            }
        }
        Self::Known(owners)
    }

    /// Who serves a slot.
    pub(super) fn owner(&self, slot: Slot) -> Option<&Arc<Member>> {
        match self {
            Self::Known(owners) => owners.get(slot.index())?.as_ref(),
            Self::Joining | Self::Down(_) => None,
        }
    }

    /// A slot has moved.
    pub(super) fn assign(&mut self, slot: Slot, member: Arc<Member>) {
        if let Self::Known(owners) = self
            && let Some(owner) = owners.get_mut(slot.index())
        {
            *owner = Some(member);
        }
    }

    /// The masters, each with how many slots it serves, in order of address.
    pub(super) fn masters(&self) -> Vec<(Arc<Member>, usize)> {
        let Self::Known(owners) = self else { return Vec::new() };
        let mut slots: HashMap<&HostPort, (Arc<Member>, usize)> = HashMap::new();
        for owner in owners.iter().flatten() {
            slots.entry(&owner.address).or_insert_with(|| (Arc::clone(owner), 0)).1 += 1;
        }
        let mut masters: Vec<_> = slots.into_values().collect();
        masters.sort_by(|(one, _), (other, _)| one.address.cmp(&other.address));
        masters
    }
}
