//! A Redis that speaks TLS alone, and only to who has a certificate.

use std::thread;

use anyhow::{Context as _, Result};
use redis::aio::MultiplexedConnection;

use crate::{Certificates, Node, Port, node::IN_MEMORY};

/// A Redis with a TLS port and no other, which asks clients for a certificate. The harness reaches it at a Unix socket.
/// When dropped while it runs, it asserts that every key it holds expires.
#[derive(Debug)]
pub struct TlsRedis {
    node: Node,
    certificates: Certificates,
}

impl TlsRedis {
    /// A running Redis with an authority of its own.
    ///
    /// # Errors
    /// When `redis-server` is missing, has no TLS, or doesn't answer.
    pub async fn start() -> Result<Self> {
        let (port, certificates) = (Port::lease()?, Certificates::generate()?);
        let number = port.number().to_string();
        let node = Node::new(port)?;
        let text = "the directory for temporary files is not UTF-8";
        let socket = node.directory().join("redis.sock");
        let socket = socket.to_str().context(text)?;
        let (certificate, key) = certificates.server();
        let mut node = node
            .reached_at(format!("unix://{socket}"))
            .with(["--port", "0", "--tls-port", &number, "--unixsocket", socket])
            .with(IN_MEMORY)
            .with(["--tls-auth-clients", "yes"])
            .with(["--tls-cert-file", certificate.to_str().context(text)?])
            .with(["--tls-key-file", key.to_str().context(text)?])
            .with(["--tls-ca-cert-file", certificates.authority().to_str().context(text)?]);
        node.restart().await?;
        Ok(Self { node, certificates })
    }

    /// `rediss://127.0.0.1:…`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.port())
    }

    /// The TLS port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.node.port()
    }

    /// What a client needs.
    #[must_use]
    pub const fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The server, to kill it or freeze it.
    pub const fn node(&mut self) -> &mut Node {
        &mut self.node
    }

    /// A new connection, past TLS.
    ///
    /// # Errors
    /// When Redis doesn't answer.
    pub async fn connection(&self) -> Result<MultiplexedConnection> {
        self.node.connection().await
    }
}

impl Drop for TlsRedis {
    fn drop(&mut self) {
        if self.node.process().is_some() && !thread::panicking() {
            self.node.thaw();
            self.node.check_all_keys_expire().unwrap();
        }
    }
}
