//! A slot on its way from one master to another, step by step.

use anyhow::{Result, ensure};

use super::Cluster;

/// How long one MIGRATE may take, in ms.
const TIMEOUT_MS: &str = "5000";

/// A slot that one master gives away and another takes in. The first answers ASK for keys that it no longer has, and
/// either answers TRYAGAIN to a command whose keys are split between them. After [`Migration::finish`] the first
/// answers MOVED.
#[derive(Debug)]
#[must_use = "a slot that stays on the move breaks the tests after this one"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: String,
    /// The master that gives the slot away.
    pub from: usize,
    /// The master that takes it in.
    pub to: usize,
}

impl Cluster {
    /// Begins to move a slot to the master `to`; no key has moved yet.
    ///
    /// # Errors
    /// When `to` has the slot already, or a node refuses.
    pub async fn migrate(&self, slot: u16, to: usize) -> Result<Migration<'_>> {
        let from = self.master_of_slot(slot).await?;
        ensure!(from != to, "node {to} has slot {slot} already");
        let slot = slot.to_string();
        let id = |index: usize| self.members[index].id.as_str();
        self.node(to).run::<()>(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", id(from)]).await?;
        self.node(from).run::<()>(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", id(to)]).await?;
        Ok(Migration { cluster: self, slot, from, to })
    }
}

impl Migration<'_> {
    /// The keys that haven't moved yet, at most `at_most`.
    ///
    /// # Errors
    /// When the master doesn't answer.
    pub async fn keys(&self, at_most: usize) -> Result<Vec<String>> {
        self.cluster.node(self.from).run(&["CLUSTER", "GETKEYSINSLOT", &self.slot, &at_most.to_string()]).await
    }

    /// Moves these keys; those that are gone already don't matter.
    ///
    /// # Errors
    /// When a master refuses.
    pub async fn move_keys(&self, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        // Masters talk past the proxies here: `redis-cli` would use the same addresses as other clients.
        let port = self.cluster.node(self.to).port().to_string();
        let mut words = vec!["MIGRATE", "127.0.0.1", &port, "", "0", TIMEOUT_MS, "KEYS"];
        words.extend(keys.iter().map(String::as_str));
        self.cluster.node(self.from).run(&words).await
    }

    /// Moves all keys, also those that came in meanwhile, and gives the slot to its new master.
    ///
    /// # Errors
    /// When a node refuses.
    pub async fn finish(self) -> Result<()> {
        loop {
            let keys = self.keys(100).await?;
            if keys.is_empty() {
                break;
            }
            self.move_keys(&keys).await?;
        }
        // The new master first: were it last and failed, nobody would serve the slot.
        let id = self.cluster.members[self.to].id.as_str();
        let others = (0..self.cluster.members.len()).filter(|index| ![self.to, self.from].contains(index));
        for index in [self.to, self.from].into_iter().chain(others) {
            let is_master = self.cluster.view(index).await?.iter().any(|seen| seen.is("myself") && seen.is("master"));
            if is_master {
                self.cluster.node(index).run::<()>(&["CLUSTER", "SETSLOT", &self.slot, "NODE", id]).await?;
            }
        }
        Ok(())
    }
}
