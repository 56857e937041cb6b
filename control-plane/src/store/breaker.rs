//! When a server that doesn't answer counts as dead.

use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use tokio::time::Instant;

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
    /// When the server last answered, in ms after `start`: a call over many slots is many calls, and may be late alone.
    answered_ms: AtomicU64,
    start: Instant,
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
        let (unanswered, answered_ms) = (AtomicU32::new(0), AtomicU64::new(0));
        Self { unanswered, patience: timeout / 2, answered_ms, start: Instant::now() }
    }

    /// The server answered, whatever it said.
    pub(super) fn answered(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
        self.answered_ms.store(self.now_ms(), Ordering::Relaxed);
    }

    /// A call gave up after `waited`.
    pub(super) fn unanswered(&self, waited: Duration) -> Silence {
        if waited < self.patience {
            return Silence::Bearable;
        }
        let before = self.unanswered.fetch_add(1, Ordering::Relaxed);
        let silent_ms = self.now_ms().saturating_sub(self.answered_ms.load(Ordering::Relaxed));
        let silent = u128::from(silent_ms) >= self.patience.as_millis();
        if !silent || before.saturating_add(1) < UNANSWERED {
            return Silence::Bearable;
        }
        // The count begins anew: the next calls come once a probe was answered.
        self.unanswered.store(0, Ordering::Relaxed);
        Silence::TooLong
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(20);

    #[tokio::test(start_paused = true)]
    async fn five_in_a_row_are_too_many() {
        let breaker = Breaker::new(TIMEOUT);
        tokio::time::advance(TIMEOUT).await;
        for _ in 1..UNANSWERED {
            assert_eq!(breaker.unanswered(TIMEOUT), Silence::Bearable);
        }
        breaker.answered();
        tokio::time::advance(TIMEOUT).await;
        for _ in 1..UNANSWERED {
            assert_eq!(breaker.unanswered(TIMEOUT), Silence::Bearable);
        }
        assert_eq!(breaker.unanswered(TIMEOUT), Silence::TooLong);
        assert_eq!(breaker.unanswered(TIMEOUT), Silence::Bearable, "the first after a trip trips it again");
    }

    /// The parts of one call over many slots, beside calls that are answered.
    #[tokio::test(start_paused = true)]
    async fn many_at_once_are_no_silence() {
        let breaker = Breaker::new(TIMEOUT);
        tokio::time::advance(TIMEOUT).await;
        breaker.answered();
        for _ in 0..64 {
            assert_eq!(breaker.unanswered(TIMEOUT), Silence::Bearable);
        }
    }

    #[test]
    fn hasty_callers_prove_nothing() {
        let breaker = Breaker::new(TIMEOUT);
        for _ in 0..1_000 {
            assert_eq!(breaker.unanswered(TIMEOUT / 2 - Duration::from_nanos(1)), Silence::Bearable);
        }
    }
}
