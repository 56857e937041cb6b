//! One `redis-server` process and what it takes to start it again.

use std::{
    env, fs,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use redis::{AsyncConnectionConfig, FromRedisValue, aio::MultiplexedConnection};
use tempfile::TempDir;

use crate::{Port, Process, Signal};

/// Names another server than the `redis-server` of `PATH`: `cargo xtask test --all` runs the limiter's suite on each
/// version that can be had.
const SERVER: &str = "SLUICEGATE_REDIS_SERVER";

/// For servers that replicate. The first write after a replica has come is otherwise held back up to a second, until it
/// says that it is there (with a transfer without a disk), and up to ten seconds pass until it can tell a replica that
/// is in sync from one that never was, as both are at offset 0.
pub(crate) const REPLICATING: [&str; 4] = ["--repl-diskless-sync", "no", "--repl-ping-replica-period", "1"];

/// No persistence.
pub(crate) const IN_MEMORY: [&str; 4] = ["--save", "", "--appendonly", "no"];

/// A `redis-server` on a port of its own, killed on drop: alone, or a part of a cluster or of a Sentinel set-up. Its
/// directory stays while the process comes and goes.
#[derive(Debug)]
pub struct Node {
    process: Option<Process>,
    frozen: AtomicBool,
    port: Port,
    directory: TempDir,
    arguments: Vec<String>,
    /// Where the harness connects to, which may be more than a caller can: another socket, another user.
    url: String,
}

impl Node {
    /// A server on `port`, which doesn't run before [`Node::restart`].
    pub(crate) fn new(port: Port) -> Result<Self> {
        let url = format!("redis://127.0.0.1:{}", port.number());
        let number = port.number().to_string();
        let node = Self {
            process: None,
            frozen: AtomicBool::new(false),
            port,
            directory: tempfile::tempdir()?,
            arguments: Vec::new(),
            url,
        };
        Ok(node.with(["--port", &number, "--bind", "127.0.0.1"]))
    }

    /// The same with more arguments; later ones win.
    pub(crate) fn with<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    /// The same with a configuration file, which the server may write to.
    pub(crate) fn with_file(mut self, lines: &str) -> Result<Self> {
        let path = self.directory().join("redis.conf");
        fs::write(&path, lines)?;
        self.arguments.insert(0, path.to_str().context("the directory for temporary files is not UTF-8")?.to_owned());
        Ok(self)
    }

    /// The same, reached by the harness at this URL.
    pub(crate) fn reached_at(mut self, url: String) -> Self {
        self.url = url;
        self
    }

    /// Starts the server, killing it first when it runs.
    ///
    /// # Errors
    /// When `redis-server` is missing, refuses its arguments, or doesn't answer.
    pub async fn restart(&mut self) -> Result<()> {
        self.kill();
        let program = env::var_os(SERVER).unwrap_or_else(|| "redis-server".into());
        let mut command = Command::new(program);
        command.args(&self.arguments).arg("--dir").arg(self.directory());
        let name = format!("redis-server on {}", self.port());
        let mut process = Process::spawn(name, &mut command, &self.directory().join("redis.log"))
            .context("no Redis to test with: `cargo xtask setup` installs it")?;
        process
            .ready(async || match self.connection().await {
                Ok(mut connection) => redis::cmd("PING").exec_async(&mut connection).await.is_ok(),
                Err(_) => false,
            })
            .await?;
        self.process = Some(process);
        Ok(())
    }

    /// Kills the server: connections are refused from now on.
    pub fn kill(&mut self) {
        self.process = None;
        self.frozen.store(false, Ordering::SeqCst);
    }

    /// Stops the server with SIGSTOP: connections open (the kernel's backlog accepts them) and nothing is answered.
    ///
    /// # Panics
    /// When it doesn't run.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        self.frozen.store(true, Ordering::SeqCst);
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// When it doesn't run.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
        self.frozen.store(false, Ordering::SeqCst);
    }

    /// Whether the server runs and isn't frozen.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.process.is_some() && !self.frozen.load(Ordering::SeqCst)
    }

    /// The process and its log, none when the server doesn't run.
    #[must_use]
    pub const fn process(&self) -> Option<&Process> {
        self.process.as_ref()
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// A new connection.
    ///
    /// # Errors
    /// When the server doesn't answer within a second.
    pub async fn connection(&self) -> Result<MultiplexedConnection> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(Duration::from_secs(1)))
            .set_response_timeout(Some(Duration::from_secs(1)));
        Ok(redis::Client::open(self.url.as_str())?.get_multiplexed_async_connection_with_config(&config).await?)
    }

    /// Runs one command on a connection of its own.
    ///
    /// # Errors
    /// When the server doesn't answer, or with an error, or with another type.
    pub async fn run<T: FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let answer = redis::cmd(words[0]).arg(&words[1..]).query_async(&mut self.connection().await?).await;
        answer.with_context(|| format!("{} on port {}", words.join(" "), self.port()))
    }

    /// One field of INFO, none when it isn't there.
    ///
    /// # Errors
    /// As [`Node::run`].
    pub async fn info(&self, section: &str, field: &str) -> Result<Option<String>> {
        Ok(field_of(&self.run::<String>(&["INFO", section]).await?, field))
    }

    /// Whether this is a replica that has all that `master` has written so far.
    pub(crate) async fn is_in_sync_with(&self, master: &Self) -> Result<bool> {
        let number = async |node: &Self, field| -> Result<u64> {
            Ok(node.info("replication", field).await?.with_context(|| format!("no {field}"))?.parse()?)
        };
        let written = number(master, "master_repl_offset").await?;
        let is_up = self.info("replication", "master_link_status").await?.as_deref() == Some("up");
        // A link that is up has brought nothing yet while the offset is 0.
        Ok(is_up && written > 0 && number(self, "slave_repl_offset").await? >= written)
    }

    /// The URL at which the harness reaches the server.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where the server keeps its files.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Fails when a key has no TTL. Counts them, which any node of any kind answers at any time; where a cluster's
    /// slots are on the move, looking at the keys one by one would not be.
    pub(crate) fn check_all_keys_expire(&self) -> Result<()> {
        let client = redis::Client::open(self.url.as_str())?;
        let mut connection = client.get_connection_with_timeout(Duration::from_secs(5))?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        let info: String = redis::cmd("INFO").arg("keyspace").query(&mut connection)?;
        let Some(counts) = field_of(&info, "db0") else { return Ok(()) };
        let count = |name: &str| counts.split(',').find_map(|count| count.strip_prefix(name)?.parse::<u64>().ok());
        let (keys, expiring) = (count("keys="), count("expires="));
        if keys.is_none() || keys != expiring {
            let sample: (String, Vec<String>) =
                redis::cmd("SCAN").arg(0).arg("COUNT").arg(100).query(&mut connection)?;
            bail!("port {}: a key never expires: {counts}; some keys: {}", self.port(), sample.1.join(" "));
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        self.process.as_ref().expect("a running Redis").signal(signal).unwrap();
    }
}

fn field_of(info: &str, field: &str) -> Option<String> {
    info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(|value| value.trim().to_owned())
}
