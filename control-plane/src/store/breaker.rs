//! When a server that doesn't answer counts as dead.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

/// This many calls in a row without an answer: one can be a lost packet or a slow script, and under load five come
/// together within a ms, so that few wait in vain.
const UNANSWERED: u32 = 5;

/// Counts the calls that waited in vain since the last answer.
#[derive(Debug)]
pub(super) struct Breaker {
    unanswered: AtomicU32,
    /// What a call must have waited to count: callers with less time than the store may take prove nothing, and must
    /// not be able to shut everybody out.
    patience: Duration,
}

/// Whether a server has been silent for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Silence {
    TooLong,
    Bearable,
}

impl Breaker {
    /// For calls that may take `timeout`. Those count that waited half of it: a joined call starts later than its
    /// callers.
    pub(super) fn new(timeout: Duration) -> Self {
        Self { unanswered: AtomicU32::new(0), patience: timeout / 2 }
    }

    /// The server answered, whatever it said.
    pub(super) fn answered(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    /// A call gave up after `waited`.
    pub(super) fn unanswered(&self, waited: Duration) -> Silence {
        if waited < self.patience {
            return Silence::Bearable;
        }
        let before = self.unanswered.fetch_add(1, Ordering::Relaxed);
        if before.saturating_add(1) >= UNANSWERED { Silence::TooLong } else { Silence::Bearable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(20);

    #[test]
    fn five_in_a_row_are_too_many() {
        let breaker = Breaker::new(TIMEOUT);
        for _ in 1..UNANSWERED {
            assert_eq!(breaker.unanswered(TIMEOUT), Silence::Bearable);
        }
        breaker.answered();
        for _ in 1..UNANSWERED {
            assert_eq!(breaker.unanswered(TIMEOUT), Silence::Bearable);
        }
        assert_eq!(breaker.unanswered(TIMEOUT), Silence::TooLong);
    }

    #[test]
    fn hasty_callers_prove_nothing() {
        let breaker = Breaker::new(TIMEOUT);
        for _ in 0..1_000 {
            assert_eq!(breaker.unanswered(TIMEOUT / 2 - Duration::from_nanos(1)), Silence::Bearable);
        }
    }
}
