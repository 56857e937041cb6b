//! The last 15 minutes in this process, for a page that shows them: each second's checks by verdict, and each policy's.
//!
//! Nothing is sampled and no check pays for it: once a second the counters that Prometheus reads are read here too, and
//! what they grew by is kept. So every check is in exactly one second.

mod policy;
mod seconds;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use sluicegate_wire::Name;
use tokio::{
    sync::broadcast,
    time::{Instant, MissedTickBehavior, interval},
};

use crate::metrics::{ByVerdict, CLASSES, Decisions};
use policy::PolicyRecord;
use seconds::Seconds;

/// How far back it goes, in seconds.
pub const WINDOW_S: u64 = 15 * 60;

/// How many seconds a subscriber may fall behind before it misses some.
const BACKLOG: usize = 60;

/// One second of all policies together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second {
    /// When it ended, in seconds since 1970.
    pub unix_s: u64,
    /// Enforced checks by what they were answered.
    pub checks: ByVerdict<u64>,
}

/// One policy over the last 15 minutes: the current minute and the 15 before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySummary {
    /// Its name.
    pub policy: Name,
    /// Enforced checks by what they were answered.
    pub checks: ByVerdict<u64>,
    /// The time that 99 of 100 of them did not exceed, at most a quarter too long.
    pub p99: Option<Duration>,
}

/// What was counted of one policy since the start.
#[derive(Clone, Copy, Debug)]
struct Total {
    checks: ByVerdict<u64>,
    latencies: [u64; CLASSES],
}

/// The last 15 minutes.
#[derive(Debug)]
pub struct History {
    record: Mutex<Record>,
    ticks: broadcast::Sender<Second>,
    /// When its second 0 was, in seconds since 1970.
    begin_unix_s: u64,
}

#[derive(Debug, Default)]
struct Record {
    seconds: Seconds,
    policies: HashMap<Name, PolicyRecord>,
}

impl Default for History {
    fn default() -> Self {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Self::beginning_at(since_1970.unwrap_or_default().as_secs())
    }
}

impl History {
    fn beginning_at(begin_unix_s: u64) -> Self {
        Self { record: Mutex::default(), ticks: broadcast::channel(BACKLOG).0, begin_unix_s }
    }

    /// Keeps it, second by second, until it is dropped.
    pub async fn keep(&self, decisions: &Decisions) -> ! {
        let begin = Instant::now();
        let mut every_second = interval(Duration::from_secs(1));
        every_second.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            let now = every_second.tick().await;
            self.read(decisions, (now - begin).as_secs());
        }
    }

    /// The last seconds, oldest first, one for each, at most [`WINDOW_S`]; those before the start are not there. The one
    /// under way isn't either.
    #[must_use]
    pub fn seconds(&self) -> Vec<Second> {
        let record = self.lock();
        let second = |(at_s, checks)| Second { unix_s: self.begin_unix_s + at_s, checks };
        record.seconds.iter().map(second).collect()
    }

    /// Each policy that was asked for in the last 15 minutes, by name.
    #[must_use]
    pub fn policies(&self) -> Vec<PolicySummary> {
        let record = self.lock();
        let now_s = record.seconds.last_s();
        let summary = |(name, policy): (&Name, &PolicyRecord)| policy.summary(name, now_s);
        let mut summaries: Vec<_> = record.policies.iter().filter_map(summary).collect();
        summaries.sort_by(|one, other| one.policy.cmp(&other.policy));
        summaries
    }

    /// Each second as it ends, from the next one on. A receiver that falls behind by a minute misses some, and is told.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Second> {
        self.ticks.subscribe()
    }

    fn read(&self, decisions: &Decisions, now_s: u64) {
        let totals = decisions.totals().into_iter().map(|(name, totals)| {
            let checks = ByVerdict::new(|verdict| totals.verdicts.of(verdict).get());
            (name, Total { checks, latencies: totals.latencies.counts() })
        });
        self.tick(now_s, totals);
    }

    /// The second `now_s` is over, and these are the totals of all policies.
    fn tick(&self, now_s: u64, totals: impl Iterator<Item = (Name, Total)>) {
        let mut record = self.lock();
        let mut grown = ByVerdict::default();
        for (name, total) in totals {
            let policy = record.policies.entry(name).or_default();
            grown.add(&policy.read(now_s, &total));
        }
        record.seconds.push(now_s, grown);
        let second = Second { unix_s: self.begin_unix_s + now_s, checks: grown };
        drop(record);
        // An error means that nobody listens.
        let _ = self.ticks.send(second);
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
