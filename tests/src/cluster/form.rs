//! How nodes become a cluster.

use anyhow::Result;

use super::{Cluster, DEADLINE, Member};
use crate::{
    FaultProxy, Node, Port,
    node::{IN_MEMORY, REPLICATING},
    until,
};

const MASTERS: [(usize, [&str; 2]); 3] = [(0, ["0", "5460"]), (1, ["5461", "10922"]), (2, ["10923", "16383"])];
const NODES: usize = 6;

/// Short, for the tests' sake, and still longer than a busy machine keeps a process waiting.
const NODE_TIMEOUT_MS: &str = "1500";

/// The cluster, by the commands that `redis-cli --cluster create` gives, all nodes meeting all others: gossip, which it
/// relies on, takes some seconds.
pub(super) async fn cluster(behind_proxies: bool) -> Result<Cluster> {
    let mut cluster = Cluster { members: Vec::new() };
    for epoch in 1..=NODES {
        let member = member(behind_proxies).await?;
        member.node.run::<()>(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch.to_string()]).await?;
        cluster.members.push(member);
    }
    for (master, [first, last]) in MASTERS {
        cluster.node(master).run::<()>(&["CLUSTER", "ADDSLOTSRANGE", first, last]).await?;
    }
    for (index, member) in cluster.members.iter().enumerate() {
        let (port, bus) = (member.node.port().to_string(), member.bus.number().to_string());
        for other in &cluster.members[..index] {
            other.node.run::<()>(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]).await?;
        }
    }
    for (master, _) in MASTERS {
        let (replica, id) = (master + MASTERS.len(), cluster.members[master].id.as_str());
        until(&format!("node {replica} to know its master"), DEADLINE, async || {
            let known = cluster.view(replica).await.ok()?;
            known.iter().any(|seen| seen.id == id && seen.is_well()).then_some(())
        })
        .await?;
        cluster.node(replica).run::<()>(&["CLUSTER", "REPLICATE", id]).await?;
    }
    cluster.settled().await?;
    Ok(cluster)
}

async fn member(behind_proxy: bool) -> Result<Member> {
    let (port, bus) = (Port::lease()?, Port::lease()?);
    let proxy = if behind_proxy { Some(FaultProxy::start(port.number()).await?) } else { None };
    let announced = proxy.as_ref().map_or_else(|| port.number(), FaultProxy::port).to_string();
    let bus_number = bus.number().to_string();
    let mut node = Node::new(port)?
        .with(IN_MEMORY)
        .with(REPLICATING)
        .with(["--cluster-enabled", "yes", "--cluster-node-timeout", NODE_TIMEOUT_MS, "--cluster-port", &bus_number])
        .with(["--cluster-announce-port", &announced, "--cluster-announce-bus-port", &bus_number])
        // A replica stays with its master, so that a test knows who takes over.
        // As the README advises: the slots of living masters serve on while others fail over.
        .with(["--cluster-allow-replica-migration", "no", "--cluster-require-full-coverage", "no"]);
    node.restart().await?;
    let id = node.run(&["CLUSTER", "MYID"]).await?;
    Ok(Member { node, bus, proxy, id })
}
