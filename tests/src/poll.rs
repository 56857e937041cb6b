//! Waiting for a condition instead of for a time.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

const INTERVAL: Duration = Duration::from_millis(5);

/// Asks `probe` every few milliseconds until it gives a value.
///
/// # Errors
/// When there is none by the deadline; the message says what was waited for.
pub async fn until<T>(what: &str, deadline: Duration, mut probe: impl AsyncFnMut() -> Option<T>) -> Result<T> {
    let start = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return Ok(value);
        }
        if start.elapsed() >= deadline {
            bail!("waited {deadline:?} for {what}, in vain");
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
