//! What one node of a cluster knows of the others: its CLUSTER NODES.

use std::ops::RangeInclusive;

/// One line of CLUSTER NODES.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) id: String,
    flags: Vec<String>,
    /// A replica's master.
    pub(super) master: Option<String>,
    connected: bool,
    slots: Vec<RangeInclusive<u16>>,
}

impl Seen {
    /// Reads all lines.
    pub(super) fn parse(nodes: &str) -> Vec<Self> {
        nodes.lines().filter_map(Self::parse_line).collect()
    }

    /// `<id> <address> <flags> <master> <ping> <pong> <epoch> <link> <slot> …`, with `[…]` for slots on the move.
    fn parse_line(line: &str) -> Option<Self> {
        let words: Vec<_> = line.split(' ').collect();
        let [id, _address, flags, master, _ping, _pong, _epoch, link, slots @ ..] = words.as_slice() else {
            return None;
        };
        let slots = slots.iter().filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(first.parse().ok()?..=last.parse().ok()?)
        });
        Some(Self {
            id: (*id).to_owned(),
            flags: flags.split(',').map(str::to_owned).collect(),
            master: (*master != "-").then(|| (*master).to_owned()),
            connected: *link == "connected",
            slots: slots.collect(),
        })
    }

    pub(super) fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|present| present == flag)
    }

    pub(super) fn serves(&self, slot: u16) -> bool {
        self.slots.iter().any(|range| range.contains(&slot))
    }

    /// Known, connected, and with no doubt about it.
    pub(super) fn is_well(&self) -> bool {
        self.connected && !["fail", "fail?", "handshake", "noaddr"].iter().any(|flag| self.is(flag))
    }
}
