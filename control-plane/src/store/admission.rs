//! How many calls may be under way at once: what exceeds it is refused at once, so that a flood costs no memory.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::StoreError;

/// Lets calls in.
#[derive(Clone, Debug)]
pub(super) struct Admission(Arc<Semaphore>);

impl Admission {
    /// At most `calls` at once.
    pub(super) fn new(calls: usize) -> Self {
        Self(Arc::new(Semaphore::new(calls)))
    }

    /// A place for one call, kept until it is dropped; none is waited for.
    pub(super) fn admit(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.0.try_acquire().map_err(|_| StoreError::Overloaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_so_many_at_once() {
        let admission = Admission::new(2);
        let first = admission.admit().unwrap();
        let _second = admission.admit().unwrap();
        assert_eq!(admission.admit().unwrap_err(), StoreError::Overloaded);
        drop(first);
        assert!(admission.admit().is_ok());
    }
}
