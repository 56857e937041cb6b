//! What a user ended is not judged.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// To be called on Ctrl-C, which the terminal sends to every process that a fixture owns too. Fixtures are killed on drop
/// as ever, and find no fault with it.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

pub(crate) fn is_interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
