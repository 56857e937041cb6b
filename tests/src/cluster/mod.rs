//! A real Redis Cluster.

mod form;
mod migration;
mod view;

use std::{thread, time::Duration};

use anyhow::{Context as _, Result, ensure};
use redis::aio::MultiplexedConnection;

pub use self::migration::Migration;
use self::view::Seen;
use crate::{FaultProxy, Node, Port, Traffic, interrupt::is_interrupted, until};

/// How long the nodes may take to agree. A failover takes some 3 s; a busy machine makes a node doubt the others.
const DEADLINE: Duration = Duration::from_secs(60);

/// Three masters, nodes 0 to 2, and a replica of each, nodes 3 to 5, until they fail over. When dropped, it asserts that
/// every key of every node that runs expires.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    node: Node,
    bus: Port,
    proxy: Option<FaultProxy>,
    id: String,
}

impl Cluster {
    /// A cluster that serves all slots, its replicas in sync.
    ///
    /// # Errors
    /// When `redis-server` is missing or older than version 7, or the nodes don't find together.
    pub async fn start() -> Result<Self> {
        form::cluster(false).await
    }

    /// The same with a proxy in front of each node, whose port is the one that the node announces: clients that follow
    /// CLUSTER SLOTS or MOVED come through it, and so do replicas. What the nodes say to each other on the bus doesn't.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub async fn start_behind_proxies() -> Result<Self> {
        form::cluster(true).await
    }

    /// `redis+cluster://…` with the first three nodes as seeds.
    #[must_use]
    pub fn url(&self) -> String {
        let seeds: Vec<_> = (0..3).map(|index| format!("127.0.0.1:{}", self.port(index))).collect();
        format!("redis+cluster://{}", seeds.join(","))
    }

    /// The port that clients know a node by: its proxy's, or its own.
    #[must_use]
    pub fn port(&self, index: usize) -> u16 {
        let Member { node, proxy, .. } = &self.members[index];
        proxy.as_ref().map_or_else(|| node.port(), FaultProxy::port)
    }

    /// One node, reached without its proxy.
    #[must_use]
    pub fn node(&self, index: usize) -> &Node {
        &self.members[index].node
    }

    /// A node's proxy.
    ///
    /// # Panics
    /// When the cluster has none.
    #[must_use]
    pub fn proxy(&self, index: usize) -> &FaultProxy {
        self.members[index].proxy.as_ref().expect("a cluster behind proxies")
    }

    /// A new connection to one node, past its proxy.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub async fn connection(&self, index: usize) -> Result<MultiplexedConnection> {
        self.node(index).connection().await
    }

    /// The slot of a key.
    ///
    /// # Errors
    /// When no node answers.
    pub async fn slot(&self, key: &str) -> Result<u16> {
        self.any()?.run(&["CLUSTER", "KEYSLOT", key]).await
    }

    /// The node that serves a key, once all nodes that answer agree on it.
    ///
    /// # Errors
    /// When they don't agree.
    pub async fn master_of(&self, key: &str) -> Result<usize> {
        self.master_of_slot(self.slot(key).await?).await
    }

    /// The node that serves a slot, once all nodes that answer agree on it.
    ///
    /// # Errors
    /// When they don't agree.
    pub async fn master_of_slot(&self, slot: u16) -> Result<usize> {
        let agreed = async || self.agreed_master(slot).await;
        until(&format!("the nodes to agree on slot {slot}"), DEADLINE, agreed).await
    }

    /// The replicas of a master, as it sees them.
    ///
    /// # Errors
    /// When the master doesn't answer.
    pub async fn replicas_of(&self, master: usize) -> Result<Vec<usize>> {
        let id = self.members[master].id.as_str();
        let seen = self.view(master).await?;
        Ok(seen
            .iter()
            .filter(|seen| seen.master.as_deref() == Some(id))
            .filter_map(|seen| self.index(&seen.id))
            .collect())
    }

    /// Kills a node. Its proxy refuses then, as the node's own port would.
    ///
    /// # Errors
    /// When the proxy fails.
    pub async fn kill(&mut self, index: usize) -> Result<()> {
        self.members[index].node.kill();
        self.set_proxy(index, Traffic::Refuse).await
    }

    /// Stops a node with SIGSTOP.
    ///
    /// # Panics
    /// When it doesn't run.
    pub fn freeze(&self, index: usize) {
        self.node(index).freeze();
    }

    /// Lets a frozen node go on.
    ///
    /// # Panics
    /// When it doesn't run.
    pub fn thaw(&self, index: usize) {
        self.node(index).thaw();
    }

    /// Starts a node again, empty but with its place in the cluster.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub async fn restart(&mut self, index: usize) -> Result<()> {
        self.members[index].node.restart().await?;
        self.set_proxy(index, Traffic::Pass).await
    }

    /// Waits until all nodes that answer agree that another than `old` serves `slot`, and that one does. Gives its index.
    ///
    /// A node that was elected less than four node timeouts (6 s) ago is no good choice: Redis 7.0 counts the old votes
    /// again, and others don't accept the master that has no epoch of its own.
    ///
    /// # Errors
    /// When no other takes over.
    pub async fn taken_over(&self, slot: u16, old: usize) -> Result<usize> {
        until(&format!("another than node {old} to serve slot {slot}"), DEADLINE, async || {
            let new = self.agreed_master(slot).await.filter(|new| *new != old)?;
            self.is_ok(new).await.then_some(new)
        })
        .await
    }

    /// Lets a replica take a living master's place without losing a write, and waits for it. Gives the new master.
    ///
    /// # Errors
    /// When the master serves no slot or has no replica, or that doesn't take over.
    pub async fn fail_over(&self, master: usize) -> Result<usize> {
        let seen = self.view(master).await?;
        let myself = seen.iter().find(|seen| seen.is("myself")).context("no node that is itself")?;
        let slot = (0..16_384).find(|slot| myself.serves(*slot)).context("no slot to take over")?;
        let replica = *self.replicas_of(master).await?.first().context("no replica to take over")?;
        self.node(replica).run::<()>(&["CLUSTER", "FAILOVER"]).await?;
        self.taken_over(slot, master).await
    }

    /// Waits until all nodes run, know each other and serve all slots, and all replicas are in sync.
    ///
    /// # Errors
    /// When that isn't so in time.
    pub async fn settled(&self) -> Result<()> {
        for index in 0..self.members.len() {
            let well = async || self.is_settled(index).await.ok().filter(|settled| *settled).map(drop);
            until(&format!("node {index} to be settled"), DEADLINE, well).await?;
        }
        Ok(())
    }

    /// How often the nodes that answer ran a command (`evalsha`, `script|load`), taken together.
    ///
    /// # Errors
    /// When a node doesn't answer.
    pub async fn calls(&self, command: &str) -> Result<u64> {
        let mut sum = 0;
        for node in self.answering() {
            if let Some(counts) = node.info("commandstats", &format!("cmdstat_{command}")).await? {
                let calls = counts.split(',').find_map(|count| count.strip_prefix("calls="));
                sum += calls.context("no calls in commandstats")?.parse::<u64>()?;
            }
        }
        Ok(sum)
    }

    /// Makes every node that answers forget its scripts.
    ///
    /// # Errors
    /// When a node doesn't answer.
    pub async fn flush_scripts(&self) -> Result<()> {
        for node in self.answering() {
            node.run::<()>(&["SCRIPT", "FLUSH"]).await?;
        }
        Ok(())
    }

    /// Asserts that every key on every node that answers expires.
    ///
    /// # Panics
    /// When one has no TTL, or a node doesn't answer.
    pub fn assert_all_keys_expire(&self) {
        self.answering().for_each(|node| node.check_all_keys_expire().unwrap());
    }

    fn answering(&self) -> impl Iterator<Item = &Node> {
        self.members.iter().map(|member| &member.node).filter(|node| node.answers())
    }

    fn any(&self) -> Result<&Node> {
        self.answering().next().context("no node of the cluster runs")
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.members.iter().position(|member| member.id == id)
    }

    async fn set_proxy(&self, index: usize, traffic: Traffic) -> Result<()> {
        match &self.members[index].proxy {
            Some(proxy) => proxy.set(traffic).await,
            None => Ok(()),
        }
    }

    async fn view(&self, index: usize) -> Result<Vec<Seen>> {
        Ok(Seen::parse(&self.node(index).run::<String>(&["CLUSTER", "NODES"]).await?))
    }

    async fn is_ok(&self, index: usize) -> bool {
        let state = self.node(index).run::<String>(&["CLUSTER", "INFO"]).await;
        state.is_ok_and(|state| state.contains("cluster_state:ok"))
    }

    /// None while the nodes disagree or one that should answer doesn't.
    async fn agreed_master(&self, slot: u16) -> Option<usize> {
        let mut agreed = None;
        for index in (0..self.members.len()).filter(|index| self.node(*index).answers()) {
            let seen = self.view(index).await.ok()?;
            let server = self.index(&seen.iter().find(|seen| seen.serves(slot))?.id)?;
            if *agreed.get_or_insert(server) != server {
                return None;
            }
        }
        agreed
    }

    async fn is_settled(&self, index: usize) -> Result<bool> {
        let seen = self.view(index).await?;
        ensure!(seen.len() == self.members.len() && seen.iter().all(Seen::is_well), "{seen:?}");
        let myself = seen.iter().find(|seen| seen.is("myself")).context("no node that is itself")?;
        let in_sync = match myself.master.as_deref().and_then(|id| self.index(id)) {
            Some(master) => self.node(index).is_in_sync_with(self.node(master)).await?,
            None => self.replicas_of(index).await?.len() == 1,
        };
        // Nodes tell clients of a replica once they have heard how far it is.
        let ranges: Vec<Vec<redis::Value>> = self.node(index).run(&["CLUSTER", "SLOTS"]).await?;
        ensure!(ranges.iter().all(|range| range.len() == 4), "a range without its replica: {ranges:?}");
        Ok(in_sync && self.is_ok(index).await)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !thread::panicking() && !is_interrupted() {
            self.members.iter().filter(|member| member.node.process().is_some()).for_each(|member| member.node.thaw());
            self.assert_all_keys_expire();
        }
    }
}
