//! `store.url`: which servers there are and, maybe, how to log in.
//!
//! Not parsed by a library for URLs: those know no lists of hosts.

mod error;

use std::{borrow::Cow, ffi::OsString, os::unix::ffi::OsStringExt as _, path::PathBuf};

use percent_encoding::percent_decode_str;

use super::{
    Secret, Topology,
    host::{self, HostError},
};
use error::StoreUrlError;

/// What a URL says.
#[derive(Debug)]
pub(super) struct StoreUrl {
    pub(super) topology: Topology,
    /// 0 where the URL names none.
    pub(super) database: u32,
    pub(super) tls: bool,
    /// Maybe without a password: that can come from elsewhere.
    pub(super) username: Option<String>,
    pub(super) password: Option<Secret>,
}

/// What others call the same.
const OTHER_NAMES: [(&str, &str); 12] = [
    ("valkey", "redis"),
    ("valkeys", "rediss"),
    ("redis+tls", "rediss"),
    ("tls", "rediss"),
    ("sentinel", "redis+sentinel"),
    ("redis-sentinel", "redis+sentinel"),
    ("rediss-sentinel", "rediss+sentinel"),
    ("redis-cluster", "redis+cluster"),
    ("rediss-cluster", "rediss+cluster"),
    ("redis+unix", "unix"),
    ("redis+socket", "unix"),
    ("valkey+unix", "unix"),
];

const REDIS_PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

impl StoreUrl {
    /// A URL of a supported kind, or the reason and the fix.
    pub(super) fn parse(text: &str) -> Result<Self, StoreUrlError> {
        let text = text.trim();
        let (scheme, rest) = text.split_once(':').ok_or(StoreUrlError::NotAUrl)?;
        let scheme = scheme.to_ascii_lowercase();
        if !scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            || !scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        {
            return Err(StoreUrlError::NotAUrl);
        }
        match &*scheme {
            "memory" if rest == "//" => Ok(Self::without_login(Topology::Memory)),
            "unix" => unix_socket(rest),
            "redis" => server(rest, false),
            "rediss" => server(rest, true),
            "redis+sentinel" => sentinels(rest, false),
            "rediss+sentinel" => sentinels(rest, true),
            "redis+cluster" => cluster(rest, false),
            "rediss+cluster" => cluster(rest, true),
            "rediss+unix" | "unix+tls" => Err(StoreUrlError::TlsSocket),
            _ => match OTHER_NAMES.iter().find(|(other, _)| *other == scheme) {
                Some((_, name)) => Err(StoreUrlError::OtherName(name)),
                None => Err(StoreUrlError::Unsupported),
            },
        }
    }

    const fn without_login(topology: Topology) -> Self {
        Self { topology, database: 0, tls: false, username: None, password: None }
    }
}

fn server(rest: &str, tls: bool) -> Result<StoreUrl, StoreUrlError> {
    let Parts { username, password, hosts, path } = Parts::split(rest)?;
    if hosts.contains(',') {
        return Err(StoreUrlError::ManyHosts);
    }
    let server = host::parse(hosts, REDIS_PORT).map_err(|error| match error {
        HostError::Empty => StoreUrlError::NoHost("redis://HOST:PORT"),
        error => StoreUrlError::Host(error),
    })?;
    let database = if path.is_empty() { Some(0) } else { database(path) }.ok_or(StoreUrlError::NotADatabase)?;
    Ok(StoreUrl { topology: Topology::Server(server), database, tls, username, password })
}

fn sentinels(rest: &str, tls: bool) -> Result<StoreUrl, StoreUrlError> {
    let Parts { username, password, hosts, path } = Parts::split(rest)?;
    if hosts.is_empty() {
        return Err(StoreUrlError::NoHost("redis+sentinel://HOST,HOST/MASTER"));
    }
    let sentinels = host::parse_list(hosts, SENTINEL_PORT).map_err(StoreUrlError::Hosts)?;
    let (master, number) = path.split_once('/').unwrap_or((path, ""));
    if master.is_empty() {
        return Err(StoreUrlError::NoMaster);
    }
    // What a sentinel accepts in its own configuration.
    if !master.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte)) {
        return Err(StoreUrlError::NotAMaster);
    }
    let database = if number.is_empty() { Some(0) } else { database(number) };
    let database = database.ok_or(StoreUrlError::NotADatabaseOfMaster)?;
    let topology = Topology::Sentinel { sentinels, master: master.to_owned() };
    Ok(StoreUrl { topology, database, tls, username, password })
}

fn cluster(rest: &str, tls: bool) -> Result<StoreUrl, StoreUrlError> {
    let Parts { username, password, hosts, path } = Parts::split(rest)?;
    if hosts.is_empty() {
        return Err(StoreUrlError::NoHost("redis+cluster://HOST,HOST"));
    }
    let seeds = host::parse_list(hosts, REDIS_PORT).map_err(StoreUrlError::Hosts)?;
    if !path.is_empty() && database(path) != Some(0) {
        return Err(StoreUrlError::ClusterPath);
    }
    Ok(StoreUrl { topology: Topology::Cluster { seeds }, database: 0, tls, username, password })
}

fn unix_socket(rest: &str) -> Result<StoreUrl, StoreUrlError> {
    if rest.contains('#') {
        return Err(StoreUrlError::Fragment);
    }
    let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
    // Both unix:/path and unix:///path; between two slashes and a third would be a host.
    let path = path.strip_prefix("//").unwrap_or(path);
    let path: Vec<u8> = percent_decode_str(path).collect();
    if !path.starts_with(b"/") || path == b"/" || path.contains(&0) {
        return Err(StoreUrlError::NoPath);
    }
    let mut url = StoreUrl::without_login(Topology::Unix(PathBuf::from(OsString::from_vec(path))));
    let mut seen = Vec::new();
    for parameter in query.into_iter().flat_map(|query| query.split('&')) {
        let (name, value) = parameter.split_once('=').ok_or(StoreUrlError::Parameters)?;
        if seen.contains(&name) {
            return Err(StoreUrlError::Parameters);
        }
        seen.push(name);
        match name {
            "db" => url.database = database(value).ok_or(StoreUrlError::NotADatabase)?,
            "user" if value.is_empty() => {}
            "user" => url.username = Some(decoded(value)?.into_owned()),
            "pass" if value.is_empty() => return Err(StoreUrlError::EmptyPassword),
            "pass" => url.password = Some(Secret::new(decoded(value)?)),
            _ => return Err(StoreUrlError::Parameters),
        }
    }
    Ok(url)
}

/// What follows `redis:`, apart from each other.
struct Parts<'a> {
    username: Option<String>,
    password: Option<Secret>,
    /// Not looked at yet.
    hosts: &'a str,
    /// Without its first slash.
    path: &'a str,
}

impl<'a> Parts<'a> {
    fn split(rest: &'a str) -> Result<Self, StoreUrlError> {
        let rest = rest.strip_prefix("//").unwrap_or("");
        let (authority, after) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // A password with one of these unencoded, and so cut in two: before anything is said of its halves.
        if after.contains('@') {
            return Err(StoreUrlError::Unencoded);
        }
        if after.contains('#') {
            return Err(StoreUrlError::Fragment);
        }
        if after.contains('?') {
            return Err(StoreUrlError::Parameters);
        }
        let path = after.strip_prefix('/').unwrap_or("");
        let Some((login, hosts)) = authority.rsplit_once('@') else {
            return Ok(Self { username: None, password: None, hosts: authority, path });
        };
        let (username, password) = match login.split_once(':') {
            Some((_, "")) => return Err(StoreUrlError::EmptyPassword),
            None if login.is_empty() => return Err(StoreUrlError::EmptyPassword),
            Some((username, password)) => (username, Some(password)),
            None => (login, None),
        };
        let username = if username.is_empty() { None } else { Some(decoded(username)?.into_owned()) };
        let password = password.map(decoded).transpose()?.map(Secret::new);
        Ok(Self { username, password, hosts, path })
    }
}

/// Digits alone: a sign or an empty text is no number of a database.
fn database(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn decoded(text: &str) -> Result<Cow<'_, str>, StoreUrlError> {
    percent_decode_str(text).decode_utf8().map_err(|_| StoreUrlError::NotUtf8)
}

#[cfg(test)]
mod tests;
