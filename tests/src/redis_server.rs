//! A Redis of the test's own.

use std::{env, process::Command, thread, time::Duration};

use anyhow::Result;
use redis::{AsyncConnectionConfig, Commands as _, aio::MultiplexedConnection};
use tempfile::TempDir;

use crate::{Port, Process, Signal};

/// Names another server than the `redis-server` of `PATH`: `cargo xtask test --all` runs the limiter's suite on each version
/// that can be had.
const SERVER: &str = "SLUICEGATE_REDIS_SERVER";

/// A real `redis-server` without persistence. When dropped while it runs, it asserts that every key it
/// holds expires.
#[derive(Debug)]
pub struct Redis {
    process: Option<Process>,
    port: Port,
    directory: TempDir,
}

impl Redis {
    /// A running Redis on a free port.
    ///
    /// # Errors
    /// When `redis-server` is missing or doesn't answer.
    pub async fn start() -> Result<Self> {
        Self::start_on(Port::lease()?).await
    }

    /// The same on a port of the caller's.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub async fn start_on(port: Port) -> Result<Self> {
        let mut redis = Self { process: None, port, directory: tempfile::tempdir()? };
        redis.restart().await?;
        Ok(redis)
    }

    /// A port on which no Redis runs until [`Redis::restart`].
    ///
    /// # Errors
    /// When no port is free.
    pub fn reserve() -> Result<Self> {
        Ok(Self { process: None, port: Port::lease()?, directory: tempfile::tempdir()? })
    }

    /// Starts Redis, empty, on the same port as before.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.kill();
        let mut command = Command::new(env::var_os(SERVER).unwrap_or_else(|| "redis-server".into()));
        command
            .args(["--port", &self.port.number().to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .arg("--dir")
            .arg(self.directory.path());
        let mut process = Process::spawn("redis-server", &mut command, &self.directory.path().join("redis.log"))?;
        process
            .ready(async || match self.connection().await {
                Ok(mut connection) => redis::cmd("PING").exec_async(&mut connection).await.is_ok(),
                Err(_) => false,
            })
            .await?;
        self.process = Some(process);
        Ok(())
    }

    /// Kills Redis: connections are refused from now on.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Stops Redis with SIGSTOP: connections open (the kernel's backlog accepts them) and nothing is answered.
    ///
    /// # Panics
    /// When Redis doesn't run.
    pub fn freeze(&self) {
        self.process.as_ref().expect("a running Redis").signal(Signal::STOP).unwrap();
    }

    /// Lets a frozen Redis go on.
    ///
    /// # Panics
    /// When Redis doesn't run.
    pub fn thaw(&self) {
        self.process.as_ref().expect("a running Redis").signal(Signal::CONT).unwrap();
    }

    /// The process and its log, none when Redis doesn't run.
    #[must_use]
    pub const fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://…` of this Redis.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// A new connection.
    ///
    /// # Errors
    /// When Redis doesn't answer within a second.
    pub async fn connection(&self) -> Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(Duration::from_secs(1)));
        Ok(redis::Client::open(self.url())?.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// Asserts that every key expires, and returns how many there are.
    ///
    /// # Panics
    /// When one has no TTL, or Redis doesn't answer.
    pub fn assert_all_keys_expire(&self) -> usize {
        let client = redis::Client::open(self.url()).unwrap();
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(5)).unwrap();
        connection.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let keys: Vec<Vec<u8>> = connection.scan().unwrap().collect::<Result<_, _>>().unwrap();
        for key in &keys {
            let ttl_ms: i64 = connection.pttl(key).unwrap();
            // −2 is a key that has expired since the scan; −1 one without a TTL.
            assert_ne!(ttl_ms, -1, "{} never expires", String::from_utf8_lossy(key));
        }
        keys.len()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        if self.process.is_some() && !thread::panicking() {
            self.thaw();
            self.assert_all_keys_expire();
        }
    }
}
