//! What is wrong with a store's URL, and how to mend it.

use super::super::host::{HostError, HostsError};

/// Why a text is not a store's URL. No variant carries any of the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::config) enum StoreUrlError {
    #[error("not a URL; use {SUPPORTED}")]
    NotAUrl,
    #[error("this kind of store is not supported; use {SUPPORTED}")]
    Unsupported,
    #[error("this kind of store goes by another name here; write {0}:// for it")]
    OtherName(&'static str),
    #[error("there is no TLS on a socket in the file system; use unix:///absolute/path")]
    TlsSocket,
    #[error("in a user name or password, write / @ : % # ? as %2F %40 %3A %25 %23 %3F")]
    Unencoded,
    #[error("a user name or password that is not UTF-8; mend what stands after its %")]
    NotUtf8,
    #[error(
        "has an empty password before the @; write USER:PASSWORD@ or :PASSWORD@, or leave it out and its @ with it"
    )]
    EmptyPassword,
    #[error("names no host; use {0}")]
    NoHost(&'static str),
    #[error("its host {0}")]
    Host(HostError),
    #[error("{0}")]
    Hosts(HostsError),
    #[error("one server has one host; use redis+cluster://HOST,HOST or redis+sentinel://HOST,HOST/MASTER")]
    ManyHosts,
    #[error("after the host comes the number of a database or nothing; use redis://HOST:PORT or redis://HOST:PORT/0")]
    NotADatabase,
    #[error("names no master; use redis+sentinel://HOST,HOST/MASTER, where MASTER is what the sentinels call it")]
    NoMaster,
    #[error("a master's name has only A-Z a-z 0-9 _ . -; after it comes /DATABASE or nothing")]
    NotAMaster,
    #[error("after the master comes the number of a database or nothing; use redis+sentinel://HOST,HOST/MASTER/0")]
    NotADatabaseOfMaster,
    #[error("a cluster has database 0 alone, and its hosts no path; use redis+cluster://HOST,HOST")]
    ClusterPath,
    #[error("names no socket; use unix:///absolute/path")]
    NoPath,
    #[error("has a ? and parameters that mean nothing here; only a unix URL has any, and they are db, user and pass")]
    Parameters,
    #[error(
        "has a # and what follows means nothing here; leave it out (certificates are always verified: to trust your \
         own, set store.tls.ca_file)"
    )]
    Fragment,
}

const SUPPORTED: &str = "redis://HOST:PORT, rediss://HOST:PORT for TLS, redis+sentinel://HOST,HOST/MASTER, \
                         redis+cluster://HOST,HOST, unix:///absolute/path or memory://";
