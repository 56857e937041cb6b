//! A Redis of the test's own.

use std::{thread, time::Duration};

use anyhow::{Context as _, Result};
use redis::{Commands as _, aio::MultiplexedConnection};

use crate::{Node, Port, Process, interrupt::is_interrupted, node::IN_MEMORY};

/// The socket that every server also listens on, in its directory.
const SOCKET: &str = "redis.sock";

/// Who the harness is on a Redis that knows its users.
const HARNESS: (&str, &str) = ("harness", "harness-password");

/// A real `redis-server` without persistence. When dropped while it runs, it asserts that every key it
/// holds expires.
#[derive(Debug)]
pub struct Redis {
    node: Node,
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
        let mut redis = Self { node: standalone(port)? };
        redis.restart().await?;
        Ok(redis)
    }

    /// A Redis that lets nobody in without a name: its default user is off. Each of `users` is a line as in an ACL file
    /// without the word `user`, such as `sluice on >secret ~* +@all`.
    ///
    /// # Errors
    /// As [`Redis::start`], and when Redis refuses a user.
    pub async fn start_with_users(users: &[&str]) -> Result<Self> {
        let port = Port::lease()?;
        let (name, password) = HARNESS;
        let url = format!("redis://{name}:{password}@127.0.0.1:{}", port.number());
        let harness = format!("{name} on >{password} ~* &* +@all");
        let mut node = standalone(port)?.reached_at(url);
        for user in ["default off", &harness].iter().chain(users) {
            node = node.with(["--user"]).with(user.split(' '));
        }
        let mut redis = Self { node };
        redis.restart().await?;
        Ok(redis)
    }

    /// `unix://…`: the same server at its socket.
    #[must_use]
    pub fn socket_url(&self) -> String {
        format!("unix://{}", self.node.directory().join(SOCKET).display())
    }

    /// A port on which no Redis runs until [`Redis::restart`].
    ///
    /// # Errors
    /// When no port is free.
    pub fn reserve() -> Result<Self> {
        Ok(Self { node: standalone(Port::lease()?)? })
    }

    /// Starts Redis, empty, on the same port as before.
    ///
    /// # Errors
    /// As [`Redis::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.node.restart().await
    }

    /// Kills Redis: connections are refused from now on.
    pub fn kill(&mut self) {
        self.node.kill();
    }

    /// Stops Redis with SIGSTOP: connections open (the kernel's backlog accepts them) and nothing is answered.
    ///
    /// # Panics
    /// When Redis doesn't run.
    pub fn freeze(&self) {
        self.node.freeze();
    }

    /// Lets a frozen Redis go on.
    ///
    /// # Panics
    /// When Redis doesn't run.
    pub fn thaw(&self) {
        self.node.thaw();
    }

    /// The process and its log, none when Redis doesn't run.
    #[must_use]
    pub const fn process(&self) -> Option<&Process> {
        self.node.process()
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.node.port()
    }

    /// `redis://…` of this Redis, without a user.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// `redis://…` of this Redis for one of its users. An empty name is the default user's.
    #[must_use]
    pub fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@127.0.0.1:{}", self.port())
    }

    /// A new connection.
    ///
    /// # Errors
    /// When Redis doesn't answer within a second.
    pub async fn connection(&self) -> Result<MultiplexedConnection> {
        self.node.connection().await
    }

    /// The server itself, for what it says of itself.
    #[must_use]
    pub const fn node(&self) -> &Node {
        &self.node
    }

    /// Asserts that every key expires, and returns how many there are.
    ///
    /// # Panics
    /// When one has no TTL, or Redis doesn't answer.
    pub fn assert_all_keys_expire(&self) -> usize {
        let client = redis::Client::open(self.node.url()).unwrap();
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

fn standalone(port: Port) -> Result<Node> {
    let node = Node::new(port)?;
    let socket = node.directory().join(SOCKET);
    let socket = socket.to_str().context("the directory for temporary files is not UTF-8")?;
    Ok(node.with(["--unixsocket", socket]).with(IN_MEMORY))
}

impl Drop for Redis {
    fn drop(&mut self) {
        if self.process().is_some() && !thread::panicking() && !is_interrupted() {
            self.thaw();
            self.assert_all_keys_expire();
        }
    }
}
