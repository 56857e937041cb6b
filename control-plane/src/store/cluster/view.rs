//! What a cluster's node says of who serves which slots.

use std::collections::BTreeSet;

use redis::{Value, cmd};
use tokio::time::Instant;

use super::slot::Slot;
use crate::{
    config::HostPort,
    store::{StoreError, link::Link},
};

/// Who serves which slots, as one node sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct View {
    /// In order of the slots.
    pub(super) ranges: Vec<Range>,
}

/// Slots that one master serves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Range {
    pub(super) first: u16,
    pub(super) last: u16,
    pub(super) master: HostPort,
}

impl View {
    /// Asks a node before `deadline`. `host` is where it was reached: a node that doesn't know its own name means that.
    pub(super) async fn of(link: &Link, host: &str, deadline: Instant) -> Result<Self, StoreError> {
        // Not CLUSTER SHARDS, which only Redis 7 knows.
        let said: Value = link.query(cmd("CLUSTER").arg("SLOTS"), deadline).await?;
        let mut ranges: Vec<Range> = array(&said).iter().filter_map(|range| read_range(range, host)).collect();
        if ranges.is_empty() {
            return Err(StoreError::Unavailable("the cluster names no node that serves a slot".to_owned()));
        }
        ranges.sort();
        Ok(Self { ranges })
    }

    /// Who serves any.
    pub(super) fn masters(&self) -> BTreeSet<&HostPort> {
        self.ranges.iter().map(|range| &range.master).collect()
    }

    /// How many slots somebody serves.
    pub(super) fn covered(&self) -> usize {
        self.ranges.iter().map(|range| usize::from(range.last.abs_diff(range.first)) + 1).sum()
    }
}

/// First and last slot, the master, its replicas; each of these begins with host and port.
fn read_range(range: &Value, answering: &str) -> Option<Range> {
    let [first, last, master, ..] = array(range) else { return None };
    let slot = |value: &Value| match value {
        Value::Int(slot) => u16::try_from(*slot).ok().filter(|slot| *slot < Slot::COUNT),
        _ => None,
    };
    let [host, Value::Int(port), ..] = array(master) else { return None };
    let host = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        Value::Nil => "",
        _ => return None,
    };
    let host = match host {
        "" => answering,
        // Unknown to the node that answers.
        "?" => return None,
        host => host,
    };
    Some(Range {
        first: slot(first)?,
        last: slot(last)?,
        master: HostPort { host: host.to_owned(), port: u16::try_from(*port).ok()? },
    })
}

fn array(value: &Value) -> &[Value] {
    match value {
        Value::Array(values) => values,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(host: Value, port: i64) -> Value {
        let id = Value::BulkString(b"id".to_vec());
        Value::Array(vec![Value::Int(0), Value::Int(99), Value::Array(vec![host, Value::Int(port), id])])
    }

    fn check(value: &Value, expected: Option<&str>) {
        let master = read_range(value, "asked").map(|range| range.master.to_string());
        assert_eq!(master.as_deref(), expected, "{value:?}");
    }

    #[test]
    fn ranges_are_read() {
        let text = |text: &str| Value::BulkString(text.as_bytes().to_vec());
        check(&range(text("10.0.0.1"), 7000), Some("10.0.0.1:7000"));
        check(&range(text("fe80::1"), 7000), Some("[fe80::1]:7000"));
        check(&range(text(""), 7000), Some("asked:7000"));
        check(&range(Value::Nil, 7000), Some("asked:7000"));
        check(&range(text("?"), 7000), None);
        check(&range(text("h"), 70_000), None);
        check(&Value::Nil, None);
        check(&Value::Array(vec![Value::Int(0), Value::Int(99)]), None);
    }
}
