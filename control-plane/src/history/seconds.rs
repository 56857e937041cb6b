//! A ring of seconds.

use std::collections::VecDeque;

use super::WINDOW_S;
use crate::metrics::ByVerdict;

/// The last [`WINDOW_S`] seconds, without gaps.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    checks: VecDeque<ByVerdict<u64>>,
    last_s: u64,
}

impl Seconds {
    /// The second `at_s` is over. Those that were missed, since the process stood still, had none: what came since is in
    /// the one that is told. A second told twice is one.
    pub(super) fn push(&mut self, at_s: u64, checks: ByVerdict<u64>) {
        match self.checks.back_mut() {
            Some(last) if at_s <= self.last_s => last.add(&checks),
            before => {
                let missed = if before.is_some() { at_s - self.last_s - 1 } else { 0 };
                for _ in 0..missed.min(WINDOW_S) {
                    self.append(ByVerdict::default());
                }
                self.append(checks);
                self.last_s = at_s;
            }
        }
    }

    pub(super) const fn last_s(&self) -> u64 {
        self.last_s
    }

    /// Each second and its checks, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, ByVerdict<u64>)> {
        let first_s = (self.last_s + 1).saturating_sub(self.checks.len() as u64);
        (first_s..).zip(self.checks.iter().copied())
    }

    fn append(&mut self, checks: ByVerdict<u64>) {
        if self.checks.len() as u64 == WINDOW_S {
            self.checks.pop_front();
        }
        self.checks.push_back(checks);
    }
}
