//! Where the store is.

use std::fmt;

use url::Url;

use super::Secret;

/// The URL of a Redis server, maybe with a password in it, or `memory://` for a store in this process. Neither `Debug`
/// nor `Display` shows more than where it is.
#[derive(Clone)]
pub struct StoreUrl {
    url: Secret,
    shown: String,
}

/// Why a text is not a store's URL. No variant carries the text, which may hold a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreUrlError {
    /// Not a URL at all.
    #[error(
        "not a URL; use redis://HOST:PORT, unix:///absolute/path or memory:// (in a user name or password, write / @ : % # ? as \
         %2F %40 %3A %25 %23 %3F)"
    )]
    NotAUrl,
    /// A kind of store that there is no client for.
    #[error("this kind of store is not supported; use redis://HOST:PORT, unix:///absolute/path or memory://")]
    Unsupported,
    /// No server named.
    #[error("names no host; use redis://HOST:PORT")]
    NoHost,
    /// No socket named.
    #[error("names no socket; use unix:///absolute/path")]
    NoPath,
    /// What follows the host is not a database's number.
    #[error("after the host comes the number of a database or nothing; use redis://HOST:PORT or redis://HOST:PORT/0")]
    NotADatabase,
    /// Parameters that would be ignored.
    #[error("has parameters that mean nothing here; a redis URL has none, a unix URL may have db, user and pass")]
    Parameters,
}

impl StoreUrl {
    /// A URL of a supported kind.
    ///
    /// # Errors
    /// With the reason and the fix.
    pub fn new(text: String) -> Result<Self, StoreUrlError> {
        let url = Url::parse(&text).map_err(|_| StoreUrlError::NotAUrl)?;
        if url.fragment().is_some() {
            return Err(StoreUrlError::NotAUrl);
        }
        let shown = match url.scheme() {
            "redis" => redis_server(&url)?,
            "unix" => unix_socket(&url)?,
            "memory" if text == Self::MEMORY => text.clone(),
            _ => return Err(StoreUrlError::Unsupported),
        };
        Ok(Self { url: Secret::new(text), shown })
    }

    /// The URL of a store in this process.
    pub const MEMORY: &str = "memory://";

    /// Whether the store is in this process.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        self.url.expose() == Self::MEMORY
    }

    /// The URL with everything in it, for the client that connects.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.url.expose()
    }
}

fn redis_server(url: &Url) -> Result<String, StoreUrlError> {
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or(StoreUrlError::NoHost)?;
    let database = url.path().trim_start_matches('/');
    if !database.is_empty() && database.parse::<u32>().is_err() {
        return Err(StoreUrlError::NotADatabase);
    }
    if url.query().is_some() {
        return Err(StoreUrlError::Parameters);
    }
    let port = url.port().unwrap_or(6379);
    let database = if database.is_empty() { String::new() } else { format!("/{database}") };
    Ok(format!("redis://{host}:{port}{database}"))
}

fn unix_socket(url: &Url) -> Result<String, StoreUrlError> {
    if url.host_str().is_some_and(|host| !host.is_empty()) || !url.path().starts_with('/') || url.path() == "/" {
        return Err(StoreUrlError::NoPath);
    }
    for (name, value) in url.query_pairs() {
        match &*name {
            "user" | "pass" => {}
            "db" if value.parse::<u32>().is_ok() => {}
            "db" => return Err(StoreUrlError::NotADatabase),
            _ => return Err(StoreUrlError::Parameters),
        }
    }
    Ok(format!("unix://{}", url.path()))
}

/// Where the store is, without user name and password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "StoreUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, StoreUrlError>) {
        let url = StoreUrl::new(text.to_owned());
        assert_eq!(
            url.as_ref().map(ToString::to_string).map_err(|error| *error),
            expected.map(str::to_owned),
            "{text}"
        );
        if let Ok(url) = url {
            assert_eq!(url.expose(), text);
            assert!(!format!("{url:?} {url}").contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn servers_and_sockets() {
        check("redis://127.0.0.1:6379", Ok("redis://127.0.0.1:6379"));
        check("redis://redis.example", Ok("redis://redis.example:6379"));
        check("redis://[::1]:7000/3", Ok("redis://[::1]:7000/3"));
        check("redis://user:hunter2@host:6380/0", Ok("redis://host:6380/0"));
        check("redis://:hunter2@host/", Ok("redis://host:6379"));
        check("memory://", Ok("memory://"));
        check("unix:///run/redis.sock", Ok("unix:///run/redis.sock"));
        check("unix:/run/redis.sock?db=2&user=u&pass=hunter2", Ok("unix:///run/redis.sock"));
    }

    #[test]
    fn anything_else_is_refused() {
        check("", Err(StoreUrlError::NotAUrl));
        check("127.0.0.1:6379", Err(StoreUrlError::NotAUrl));
        check("localhost:6379", Err(StoreUrlError::Unsupported));
        check("rediss://host", Err(StoreUrlError::Unsupported));
        check("redis+cluster://host", Err(StoreUrlError::Unsupported));
        check("memory://x", Err(StoreUrlError::Unsupported));
        check("redis://", Err(StoreUrlError::NoHost));
        check("redis:///0", Err(StoreUrlError::NoHost));
        check("redis://host:99999", Err(StoreUrlError::NotAUrl));
        check("redis://:pa/ss@host", Err(StoreUrlError::NotAUrl));
        check("redis://host/zero", Err(StoreUrlError::NotADatabase));
        check("redis://host?timeout=1", Err(StoreUrlError::Parameters));
        check("redis://:hunter2#x@host", Err(StoreUrlError::NotAUrl));
        check("unix://run/redis.sock", Err(StoreUrlError::NoPath));
        check("unix:///", Err(StoreUrlError::NoPath));
        check("unix:///run/redis.sock?db=x", Err(StoreUrlError::NotADatabase));
        check("unix:///run/redis.sock?dbb=1", Err(StoreUrlError::Parameters));
    }
}
