//! What kind of server a link leads to: said in the log once it is connected.

use redis::cmd;
use tokio::time::Instant;

use super::{link::Link, news::News};

/// Looks at the server before `deadline` and logs what it found, unless that was logged before. A server that doesn't
/// tell (by its access list) is none the worse for it.
pub(super) async fn report(link: &Link, news: &News, at: &str, in_cluster: bool, deadline: Instant) {
    let info: String = match link.query(&cmd("INFO"), deadline).await {
        Ok(info) => info,
        Err(error) => {
            tracing::debug!(server = at, %error, "the server doesn't say what it is");
            return;
        }
    };
    let found = Survey::of(&info);
    if !news.is_new(&format!("{at} {found:?}")) {
        return;
    }
    let Survey { version, mode, role, evicts } = found;
    tracing::info!(server = at, version, mode, role, "found");
    if mode == "cluster" && !in_cluster {
        tracing::warn!(
            server = at,
            "the server is part of a cluster, and has but some of the keys; use a redis+cluster:// URL"
        );
    }
    if let Some(maxmemory_policy) = evicts {
        tracing::warn!(
            server = at,
            maxmemory_policy,
            "the server may drop buckets when its memory is full, and a dropped bucket is a full one; set \
             maxmemory-policy noeviction"
        );
    }
}

/// What INFO says.
#[derive(Debug, PartialEq, Eq)]
struct Survey<'a> {
    version: &'a str,
    mode: &'a str,
    role: &'a str,
    /// The memory policy, unless it is the one that never drops a key.
    evicts: Option<&'a str>,
}

impl<'a> Survey<'a> {
    fn of(info: &'a str) -> Self {
        let field = |name: &str| {
            let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.map_or("unknown", str::trim)
        };
        let policy = field("maxmemory_policy");
        Self {
            // Valkey says 7.2.4 under `redis_version`, for old clients.
            version: Some(field("valkey_version"))
                .filter(|version| *version != "unknown")
                .unwrap_or(field("redis_version")),
            mode: field("redis_mode"),
            role: field("role"),
            evicts: Some(policy).filter(|policy| !matches!(*policy, "noeviction" | "unknown")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_is_read() {
        let info = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n# Memory\r\nmaxmemory:0\r\n\
                    maxmemory_policy:allkeys-lru\r\nrole:master\r\n";
        let found = Survey::of(info);
        assert_eq!((found.version, found.mode, found.role), ("7.0.15", "standalone", "master"));
        assert_eq!(found.evicts, Some("allkeys-lru"));
        let info =
            "redis_version:7.2.4\r\nvalkey_version:9.1.2\r\nredis_mode:cluster\r\nmaxmemory_policy:noeviction\r\n";
        let found = Survey::of(info);
        assert_eq!((found.version, found.mode, found.role), ("9.1.2", "cluster", "unknown"));
        assert_eq!(found.evicts, None);
    }
}
