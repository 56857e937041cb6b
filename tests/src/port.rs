//! Ports that stay one fixture's own while its server comes and goes.

use std::{
    env,
    fs::{self, File},
    net::TcpListener,
    ops::Range,
    process,
    sync::atomic::{AtomicU16, Ordering},
};

use anyhow::{Context as _, Result, bail};

/// Below the ports that Linux hands out for outgoing connections (32768 and up by default), so that no connection
/// takes the port of a server that is down for a moment.
const RANGE: Range<u16> = 20_000..32_000;

/// A port of 127.0.0.1, leased until dropped. A lock file a port keeps test processes that run at the same time apart:
/// binding to port 0 would not, since the port is free again between two lives of a server.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// A free port.
    ///
    /// # Errors
    /// When the lock files can't be made, or every port is taken.
    pub fn lease() -> Result<Self> {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let ports = u32::from(RANGE.end - RANGE.start);
        for _ in 0..ports {
            // Processes start at different places, so that they seldom try the same port.
            let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
            let number = RANGE.start + u16::try_from((process::id() % ports * 31 + step) % ports)?;
            if let Some(port) = Self::try_lease(number)? {
                return Ok(port);
            }
        }
        bail!("no port from {} to {} is free", RANGE.start, RANGE.end - 1)
    }

    /// This very port when it is free, else another.
    ///
    /// # Errors
    /// As [`Port::lease`].
    pub fn lease_or_other(preferred: u16) -> Result<Self> {
        Self::try_lease(preferred)?.map_or_else(Self::lease, Ok)
    }

    /// The port's number.
    #[must_use]
    pub const fn number(&self) -> u16 {
        self.number
    }

    fn try_lease(number: u16) -> Result<Option<Self>> {
        let directory = env::temp_dir().join("sluicegate-ports");
        fs::create_dir_all(&directory).with_context(|| format!("can't make {}", directory.display()))?;
        let path = directory.join(number.to_string());
        // A file of another user can't be opened: that port is theirs.
        let Ok(lock) = File::options().create(true).write(true).truncate(false).open(&path) else {
            return Ok(None);
        };
        if lock.try_lock().is_err() || TcpListener::bind(("127.0.0.1", number)).is_err() {
            return Ok(None);
        }
        Ok(Some(Self { number, _lock: lock }))
    }
}
