//! A real Redis with replicas that three Sentinels watch.

use std::{collections::HashMap, thread, time::Duration};

use anyhow::{Context as _, Result, ensure};

use crate::{
    FaultProxy, Node, Port, Traffic,
    node::{IN_MEMORY, REPLICATING},
    until,
};

/// What the Sentinels call the master.
const NAME: &str = "sluice";
const REPLICAS: usize = 2;
const SENTINELS: usize = 3;
const QUORUM: usize = 2;

const DOWN_AFTER_MS: u32 = 1000;
const FAILOVER_TIMEOUT_MS: u32 = 3000;

/// How often a Sentinel looks, told by SENTINEL DEBUG: the usual 1 to 10 s are most of a failover's time. And what it
/// does after a pause of its own, which a busy machine gives it now and then: by default it does nothing for 30 s.
const PERIODS_MS: [(&str, &str); 6] = [
    ("INFO-PERIOD", "500"),
    ("PING-PERIOD", "200"),
    ("ASK-PERIOD", "200"),
    ("PUBLISH-PERIOD", "200"),
    ("TILT-PERIOD", "1000"),
    ("MIN-LINK-RECONNECT-PERIOD", "1000"),
];

/// How long the Sentinels may take to agree. A failover takes some 2 s, and some 8 s when the first attempt fails.
const DEADLINE: Duration = Duration::from_secs(60);

/// Three data nodes, of which the first is the master until a failover, and three Sentinels with a quorum of two. When
/// dropped, it asserts that every key of every data node that runs expires.
#[derive(Debug)]
pub struct Sentinels {
    sentinels: Vec<Node>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    node: Node,
    proxy: Option<FaultProxy>,
}

impl Member {
    /// The port that the Sentinels know.
    fn port(&self) -> u16 {
        self.proxy.as_ref().map_or_else(|| self.node.port(), FaultProxy::port)
    }
}

impl Sentinels {
    /// All of them, knowing each other, the replicas in sync.
    ///
    /// # Errors
    /// When `redis-server` is missing, or they don't find together.
    pub async fn start() -> Result<Self> {
        Self::form(false).await
    }

    /// The same with a proxy in front of each data node, whose port is the one that Sentinels announce. Sentinels and
    /// replicas come through it too, so a proxy that lets nothing pass makes the Sentinels fail over.
    ///
    /// # Errors
    /// As [`Sentinels::start`].
    pub async fn start_behind_proxies() -> Result<Self> {
        Self::form(true).await
    }

    /// `redis+sentinel://…/sluice`.
    #[must_use]
    pub fn url(&self) -> String {
        let sentinels: Vec<_> = self.sentinels.iter().map(|node| format!("127.0.0.1:{}", node.port())).collect();
        format!("redis+sentinel://{}/{NAME}", sentinels.join(","))
    }

    /// A data node, reached without its proxy.
    #[must_use]
    pub fn node(&self, index: usize) -> &Node {
        &self.members[index].node
    }

    /// A Sentinel, to freeze it and thaw it.
    #[must_use]
    pub fn sentinel(&self, index: usize) -> &Node {
        &self.sentinels[index]
    }

    /// The port that the Sentinels know a data node by: its proxy's, or its own.
    #[must_use]
    pub fn port(&self, index: usize) -> u16 {
        self.members[index].port()
    }

    /// A data node's proxy.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn proxy(&self, index: usize) -> &FaultProxy {
        self.members[index].proxy.as_ref().expect("data nodes behind proxies")
    }

    /// The master that all Sentinels that answer announce, once they agree.
    ///
    /// # Errors
    /// When they don't.
    pub async fn master(&self) -> Result<usize> {
        until("the Sentinels to agree on the master", DEADLINE, async || self.announced().await).await
    }

    /// Waits until all Sentinels that answer announce another master than `old`, and it is one. Gives its index.
    ///
    /// # Errors
    /// When none takes over.
    pub async fn taken_over(&self, old: usize) -> Result<usize> {
        until(&format!("another than node {old} to be the master"), DEADLINE, async || {
            let new = self.announced().await.filter(|new| *new != old)?;
            (self.role(new).await.ok()? == "master").then_some(new)
        })
        .await
    }

    /// Lets a Sentinel replace the living master, and waits for it. Gives the new master.
    ///
    /// # Errors
    /// When none takes over.
    pub async fn fail_over(&self) -> Result<usize> {
        let old = self.master().await?;
        let sentinel = self.answering().next().context("no Sentinel runs")?;
        // Refused while another failover is under way, or no replica was heard of a moment ago.
        let order = async || sentinel.run::<()>(&["SENTINEL", "FAILOVER", NAME]).await.ok();
        until("a Sentinel to fail over", DEADLINE, order).await?;
        self.taken_over(old).await
    }

    /// Kills a data node. Its proxy refuses then, as the node's own port would.
    ///
    /// # Errors
    /// When the proxy fails.
    pub async fn kill(&mut self, index: usize) -> Result<()> {
        self.members[index].node.kill();
        self.set_proxy(index, Traffic::Refuse).await
    }

    /// Starts a data node again, empty, as what it was started as at first: the Sentinels make it a replica of the
    /// present master after a while.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub async fn restart(&mut self, index: usize) -> Result<()> {
        self.members[index].node.restart().await?;
        self.set_proxy(index, Traffic::Pass).await
    }

    /// Kills a Sentinel.
    pub fn kill_sentinel(&mut self, index: usize) {
        self.sentinels[index].kill();
    }

    /// Starts a Sentinel again with what it knew.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub async fn restart_sentinel(&mut self, index: usize) -> Result<()> {
        let sentinel = &mut self.sentinels[index];
        sentinel.restart().await?;
        let periods = PERIODS_MS.iter().flat_map(|(name, ms)| [*name, *ms]);
        sentinel.run(&["SENTINEL", "DEBUG"].into_iter().chain(periods).collect::<Vec<_>>()).await
    }

    /// Waits until all run and know each other, and all replicas are in sync.
    ///
    /// # Errors
    /// When that isn't so in time.
    pub async fn settled(&self) -> Result<()> {
        for index in 0..SENTINELS {
            let settled = async || self.is_settled(index).await.ok();
            until(&format!("Sentinel {index} to know all others"), DEADLINE, settled).await?;
        }
        Ok(())
    }

    /// Asserts that every key on every data node that answers expires.
    ///
    /// # Panics
    /// When one has no TTL, or a node doesn't answer.
    pub fn assert_all_keys_expire(&self) {
        let nodes = self.members.iter().map(|member| &member.node).filter(|node| node.answers());
        nodes.for_each(|node| node.check_all_keys_expire().unwrap());
    }

    async fn form(behind_proxies: bool) -> Result<Self> {
        let mut members: Vec<Member> = Vec::new();
        for _ in 0..=REPLICAS {
            let port = Port::lease()?;
            let proxy = if behind_proxies { Some(FaultProxy::start(port.number()).await?) } else { None };
            let announced = proxy.as_ref().map_or_else(|| port.number(), FaultProxy::port).to_string();
            let mut node = Node::new(port)?.with(IN_MEMORY).with(REPLICATING).with([
                "--replica-announce-ip",
                "127.0.0.1",
                "--replica-announce-port",
                &announced,
            ]);
            if let Some(master) = members.first() {
                node = node.with(["--replicaof", "127.0.0.1", &master.port().to_string()]);
            }
            node.restart().await?;
            members.push(Member { node, proxy });
        }
        let master = members[0].port();
        let file = format!(
            "sentinel monitor {NAME} 127.0.0.1 {master} {QUORUM}\n\
             sentinel down-after-milliseconds {NAME} {DOWN_AFTER_MS}\n\
             sentinel failover-timeout {NAME} {FAILOVER_TIMEOUT_MS}\n\
             sentinel parallel-syncs {NAME} {REPLICAS}\n"
        );
        let mut all = Self { sentinels: Vec::new(), members };
        for index in 0..SENTINELS {
            all.sentinels.push(Node::new(Port::lease()?)?.with_file(&file)?.with(["--sentinel"]));
            all.restart_sentinel(index).await?;
        }
        all.settled().await?;
        Ok(all)
    }

    fn answering(&self) -> impl Iterator<Item = &Node> {
        self.sentinels.iter().filter(|sentinel| sentinel.answers())
    }

    async fn set_proxy(&self, index: usize, traffic: Traffic) -> Result<()> {
        match &self.members[index].proxy {
            Some(proxy) => proxy.set(traffic).await,
            None => Ok(()),
        }
    }

    /// None while the Sentinels disagree or one that should answer doesn't.
    async fn announced(&self) -> Option<usize> {
        let mut agreed = None;
        for sentinel in self.answering() {
            let (_, port) = sentinel.run::<(String, u16)>(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME]).await.ok()?;
            if *agreed.get_or_insert(port) != port {
                return None;
            }
        }
        self.members.iter().position(|member| Some(member.port()) == agreed)
    }

    async fn role(&self, index: usize) -> Result<String> {
        self.node(index).info("replication", "role").await?.context("no role")
    }

    /// Fails while it isn't so.
    async fn is_settled(&self, index: usize) -> Result<()> {
        type Fields = HashMap<String, String>;
        let sentinel = self.sentinel(index);
        let master: Fields = sentinel.run(&["SENTINEL", "MASTER", NAME]).await?;
        ensure!(master["flags"] == "master", "{master:?}");
        ensure!(master["num-other-sentinels"] == (SENTINELS - 1).to_string(), "{master:?}");
        let replicas: Vec<Fields> = sentinel.run(&["SENTINEL", "REPLICAS", NAME]).await?;
        ensure!(replicas.len() == REPLICAS, "{replicas:?}");
        for replica in &replicas {
            ensure!(replica["flags"] == "slave" && replica["master-link-status"] == "ok", "{replica:?}");
            ensure!(replica["master-port"] == master["port"], "{replica:?}");
        }
        let announced = self.members.iter().position(|member| master["port"] == member.port().to_string());
        let announced = announced.context("a master that nobody knows")?;
        for replica in (0..self.members.len()).filter(|replica| *replica != announced) {
            let in_sync = self.node(replica).is_in_sync_with(self.node(announced)).await?;
            ensure!(in_sync, "node {replica} is behind");
        }
        Ok(())
    }
}

impl Drop for Sentinels {
    fn drop(&mut self) {
        // They would fail over while their nodes are being looked at.
        self.sentinels.iter_mut().for_each(Node::kill);
        if !thread::panicking() {
            let nodes = self.members.iter().map(|member| &member.node);
            nodes.filter(|node| node.process().is_some()).for_each(Node::thaw);
            self.assert_all_keys_expire();
        }
    }
}
