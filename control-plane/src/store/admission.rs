//! How many calls may be under way at once: what exceeds it is refused at once, so that a flood costs no memory.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::StoreError;

/// Lets calls in.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    places: Arc<Semaphore>,
    most: usize,
}

impl Admission {
    /// At most `calls` at once.
    pub(super) fn new(calls: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(calls)), most: calls }
    }

    /// A place for one call, kept until it is dropped; none is waited for.
    pub(super) fn admit(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.places.try_acquire().map_err(|_| StoreError::Overloaded)
    }

    /// How many calls are under way.
    pub(super) fn in_flight(&self) -> usize {
        self.most.saturating_sub(self.places.available_permits())
    }

    /// How many may be.
    pub(super) const fn most(&self) -> usize {
        self.most
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
        assert_eq!((admission.in_flight(), admission.most()), (2, 2));
        drop(first);
        assert!(admission.admit().is_ok());
    }
}
