//! Time is measured while nothing of this process is starting.

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// An Envoy that starts compiles the filter, several times at once. Tests that run at the same time hold it up, but
/// only those that measure mind.
static STARTING: RwLock<()> = RwLock::const_new(());

/// Waits until no Envoy of this process is starting, and keeps others from it until the guard is dropped.
pub async fn quiet() -> RwLockWriteGuard<'static, ()> {
    STARTING.write().await
}

/// Held while an Envoy starts.
pub(crate) async fn starting() -> RwLockReadGuard<'static, ()> {
    STARTING.read().await
}
