//! The store as it is configured.

use std::{fmt, num::NonZeroUsize, path::PathBuf, time::Duration};

use sluicegate_lua::KeyPrefix;

use super::{HostPort, Password, Secret};

/// The store. Its `Display` says where it is, as a URL without secrets.
#[derive(Clone, Debug)]
pub struct Store {
    /// Which servers there are, and what they are to each other (`store.url`).
    pub topology: Topology,
    /// The number of the database; 0 in a cluster.
    pub database: u32,
    /// How to log in at the servers (in `store.url`, or `store.username` and `store.password` or `store.password_file`).
    pub login: Option<Login>,
    /// How to log in at the sentinels (`store.sentinel`); none where there are none.
    pub sentinel_login: Option<Login>,
    /// How servers and sentinels show who they are (`store.tls`), where the URL says that they speak TLS.
    pub tls: Option<Tls>,
    /// The longest that one operation may take, connecting included (`store.timeout`).
    pub timeout: Duration,
    /// What every key begins with (`store.prefix`).
    pub prefix: KeyPrefix,
    /// Connections to each server, each shared by many calls (`store.connections`).
    pub connections: NonZeroUsize,
    /// Calls under way at once; more are refused (`store.max_in_flight`).
    pub max_in_flight: NonZeroUsize,
}

/// Which servers there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// None: the store is in this process.
    Memory,
    /// One, at a socket in the file system; the path is absolute.
    Unix(PathBuf),
    /// One.
    Server(HostPort),
    /// One master and its replicas, whose addresses the sentinels know.
    Sentinel {
        /// At least one sentinel.
        sentinels: Vec<HostPort>,
        /// What the sentinels call the master.
        master: String,
    },
    /// A Redis Cluster.
    Cluster {
        /// At least one node; it knows the others.
        seeds: Vec<HostPort>,
    },
}

/// How to log in. There is no user without a password: the client would not log in at all.
#[derive(Clone, Debug)]
pub struct Login {
    /// The user; none is Redis's user `default`.
    pub username: Option<String>,
    /// What proves it.
    pub password: Password,
}

/// How to know the servers, and be known by them. The files were read and parsed when the configuration was loaded.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Certificates of the authorities to trust, in PEM (`store.tls.ca_file`); without, those that the system trusts.
    pub ca_pem: Option<String>,
    /// What to show to servers that ask who we are.
    pub identity: Option<Identity>,
}

/// A certificate and its key.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate and what is between it and an authority, in PEM (`store.tls.cert_file`).
    pub certificate_pem: String,
    /// The private key, in PEM (`store.tls.key_file`).
    pub key_pem: Secret,
}

impl fmt::Display for Store {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = if self.tls.is_some() { "s" } else { "" };
        let mut database = "/";
        match &self.topology {
            Topology::Memory => formatter.write_str("memory://")?,
            Topology::Unix(path) => {
                write!(formatter, "unix://{}", path.display())?;
                database = "?db=";
            }
            Topology::Server(server) => write!(formatter, "redis{tls}://{server}")?,
            Topology::Sentinel { sentinels, master } => {
                write!(formatter, "redis{tls}+sentinel://{}/{master}", List(sentinels))?;
            }
            Topology::Cluster { seeds } => write!(formatter, "redis{tls}+cluster://{}", List(seeds))?,
        }
        if self.database == 0 { Ok(()) } else { write!(formatter, "{database}{}", self.database) }
    }
}

struct List<'a>(&'a [HostPort]);

impl fmt::Display for List<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, host) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(formatter, "{comma}{host}")?;
        }
        Ok(())
    }
}
