//! The store's clock, as far as this process knows it.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// Guesses the store's time from this machine's. Only the calendar's boundaries are made of it, and the script itself
/// checks that they cover its own time.
#[derive(Debug, Default)]
pub(super) struct StoreClock {
    /// How far the store's clock is ahead of this machine's, in ms.
    ahead_ms: AtomicI64,
}

impl StoreClock {
    /// The store's time in ms since 1970, by our best knowledge.
    pub(super) fn now_ms(&self) -> u64 {
        machine_ms().saturating_add_signed(self.ahead_ms.load(Ordering::Relaxed))
    }

    /// The store said what time it is.
    pub(super) fn correct(&self, now_ms: u64) {
        let ahead_ms = i128::from(now_ms) - i128::from(machine_ms());
        self.ahead_ms.store(i64::try_from(ahead_ms).unwrap_or(0), Ordering::Relaxed);
    }
}

/// This machine's time in ms since 1970.
pub(super) fn machine_ms() -> u64 {
    // A clock before 1970 is as wrong as one at 1970.
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}
