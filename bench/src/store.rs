//! A Redis for measurements.

use std::ops::{Deref, DerefMut};

use anyhow::{Context as _, Result};
use sluicegate_tests::{Cluster, Node, Redis};

/// A Redis that is dropped without a look at its keys: peers leave some without TTL, and a million take a while.
#[derive(Debug)]
pub(crate) struct Store(Redis);

impl Store {
    pub(crate) async fn start() -> Result<Self> {
        Ok(Self(Redis::start().await?))
    }

    pub(crate) fn pid(&self) -> Result<u32> {
        pid(self.0.node())
    }
}

impl Deref for Store {
    type Target = Redis;

    fn deref(&self) -> &Redis {
        &self.0
    }
}

impl DerefMut for Store {
    fn deref_mut(&mut self) -> &mut Redis {
        &mut self.0
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Three masters alone: the replicas, which they were made with, would take their share of the machine.
#[derive(Debug)]
pub(crate) struct Masters(Cluster);

impl Masters {
    pub(crate) const COUNT: usize = 3;

    pub(crate) async fn start() -> Result<Self> {
        let mut cluster = Cluster::start().await?;
        for replica in Self::COUNT..2 * Self::COUNT {
            cluster.kill(replica).await?;
        }
        Ok(Self(cluster))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    pub(crate) fn nodes(&self) -> impl Iterator<Item = &Node> {
        (0..Self::COUNT).map(|index| self.0.node(index))
    }

    pub(crate) fn pids(&self) -> Result<Vec<u32>> {
        self.nodes().map(pid).collect()
    }
}

fn pid(node: &Node) -> Result<u32> {
    Ok(node.process().context("Redis doesn't run")?.id())
}
