//! How long to wait between attempts.

use std::time::Duration;

/// The pause after the first failed attempt; each further one doubles it.
const FIRST: Duration = Duration::from_millis(10);
/// The longest pause: a server is found again within about this time.
const MAX: Duration = Duration::from_millis(250);

/// Pauses that double, each half to whole of it at random, so that many services don't come back in step.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    /// Pauses from `first` up to `max`.
    pub(super) const fn new(first: Duration, max: Duration) -> Self {
        Self { next: first, max }
    }

    /// The next pause.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next.mul_f64(0.5 + fastrand::f64() / 2.0);
        self.next = (self.next * 2).min(self.max);
        pause
    }

    /// An attempt went well.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(FIRST, MAX)
    }
}
