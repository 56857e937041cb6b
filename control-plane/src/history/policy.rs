//! One policy's minutes.

use std::collections::VecDeque;

use sluicegate_wire::Name;

use super::{PolicySummary, Total, WINDOW_S};
use crate::metrics::{ByVerdict, CLASSES, p99};

/// Minutes with checks, of the last 15 and the current one: some 600 bytes each, so that ten thousand policies fit.
#[derive(Debug)]
pub(super) struct PolicyRecord {
    seen: Total,
    minutes: VecDeque<Minute>,
}

#[derive(Debug)]
struct Minute {
    number: u64,
    checks: ByVerdict<u64>,
    latencies: [u64; CLASSES],
}

impl Default for PolicyRecord {
    fn default() -> Self {
        let seen = Total { checks: ByVerdict::default(), latencies: [0; CLASSES] };
        Self { seen, minutes: VecDeque::new() }
    }
}

impl PolicyRecord {
    /// Keeps what the totals grew by, and returns it.
    pub(super) fn read(&mut self, now_s: u64, total: &Total) -> ByVerdict<u64> {
        self.minutes.retain(|minute| is_recent(minute.number, now_s));
        let grown = ByVerdict::new(|verdict| total.checks.of(verdict) - self.seen.checks.of(verdict));
        let latencies: [u64; CLASSES] =
            std::array::from_fn(|class| total.latencies[class] - self.seen.latencies[class]);
        self.seen = *total;
        if grown.total() == 0 && latencies.iter().all(|grown| *grown == 0) {
            return grown;
        }
        let number = now_s / 60;
        if self.minutes.back().is_none_or(|last| last.number != number) {
            self.minutes.push_back(Minute { number, checks: ByVerdict::default(), latencies: [0; CLASSES] });
        }
        if let Some(minute) = self.minutes.back_mut() {
            minute.checks.add(&grown);
            minute.latencies.iter_mut().zip(latencies).for_each(|(kept, grown)| *kept += grown);
        }
        grown
    }

    /// What is left of the last 15 minutes; none without a check.
    pub(super) fn summary(&self, name: &Name, now_s: u64) -> Option<PolicySummary> {
        let mut checks = ByVerdict::default();
        let mut latencies = [0; CLASSES];
        for minute in self.minutes.iter().filter(|minute| is_recent(minute.number, now_s)) {
            checks.add(&minute.checks);
            latencies.iter_mut().zip(minute.latencies).for_each(|(all, count)| *all += count);
        }
        (checks.total() > 0).then(|| PolicySummary { policy: name.clone(), checks, p99: p99(&latencies) })
    }
}

const fn is_recent(minute: u64, now_s: u64) -> bool {
    minute + WINDOW_S / 60 >= now_s / 60
}
