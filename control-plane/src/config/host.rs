//! Where a server is: one host and its port, or a list of them as a URL has it.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

/// A server's host and port. The host is a name or an IP address, without brackets, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    /// A name or an IP address.
    pub host: String,
    /// Never 0.
    pub port: u16,
}

impl fmt::Display for HostPort {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') { write!(formatter, "[{host}]:{port}") } else { write!(formatter, "{host}:{port}") }
    }
}

/// Why a text is not a host with or without a port. It follows what says which host is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostError {
    #[error("is empty; write its name or IP address, or take out the comma")]
    Empty,
    #[error("is not a name, an IPv4 address or an IPv6 address in brackets; write HOST:PORT or [::1]:PORT")]
    NotAHost,
    #[error("has a port that is not a number from 1 to 65535; write HOST:PORT, or HOST alone for the usual port")]
    Port,
    #[error("stands for all addresses of a machine, which can only be listened on; write 127.0.0.1 or [::1]")]
    Wildcard,
}

/// Why a text is not a list of hosts; hosts count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum HostsError {
    #[error("host {0} {1}")]
    Host(usize, HostError),
    #[error("host {0} is host {1} again; keep one of them")]
    Twice(usize, usize),
}

/// At least one host, parted by commas.
pub(super) fn parse_list(text: &str, default_port: u16) -> Result<Vec<HostPort>, HostsError> {
    let mut hosts: Vec<HostPort> = Vec::new();
    for (number, text) in (1..).zip(text.split(',')) {
        let host = parse(text, default_port).map_err(|error| HostsError::Host(number, error))?;
        if let Some(earlier) = hosts.iter().position(|earlier| *earlier == host) {
            return Err(HostsError::Twice(number, earlier + 1));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// One host.
pub(super) fn parse(text: &str, default_port: u16) -> Result<HostPort, HostError> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or(HostError::NotAHost)?;
            let address: Ipv6Addr = address.parse().map_err(|_| HostError::NotAHost)?;
            (address.to_string(), port)
        }
        // An IPv6 address without brackets.
        None if text.matches(':').count() > 1 => return Err(HostError::NotAHost),
        None => {
            let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
            (named(host)?, port)
        }
    };
    let port = match port.strip_prefix(':') {
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => port.parse().map_err(|_| HostError::Port)?,
        Some(_) => return Err(HostError::Port),
        None if port.is_empty() => default_port,
        None => return Err(HostError::NotAHost),
    };
    match (&*host, port) {
        (_, 0) => Err(HostError::Port),
        ("0.0.0.0" | "::", _) => Err(HostError::Wildcard),
        _ => Ok(HostPort { host, port }),
    }
}

/// A name as DNS has it (RFC 1035, with the underscores that container networks use) or an IPv4 address.
fn named(host: &str) -> Result<String, HostError> {
    if host.is_empty() {
        return Err(HostError::Empty);
    }
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    let name = host.len() <= 253 && host.strip_suffix('.').unwrap_or(host).split('.').all(label);
    let numeric = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if !name || numeric && host.parse::<Ipv4Addr>().is_err() {
        return Err(HostError::NotAHost);
    }
    Ok(host.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, HostError>) {
        assert_eq!(parse(text, 6379).map(|host| host.to_string()), expected.map(str::to_owned), "{text}");
    }

    fn check_list(text: &str, expected: Result<&[&str], HostsError>) {
        let hosts = parse_list(text, 26379);
        let hosts = hosts.map(|hosts| hosts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(hosts, expected.map(|hosts| hosts.iter().map(|&host| host.to_owned()).collect()), "{text}");
    }

    #[test]
    fn hosts_have_a_name_or_an_address_and_maybe_a_port() {
        check("redis", Ok("redis:6379"));
        check("Redis_1.example.:1", Ok("redis_1.example.:1"));
        check("10.0.0.1:65535", Ok("10.0.0.1:65535"));
        check("[::1]", Ok("[::1]:6379"));
        check("[0:0:0::1]:7000", Ok("[::1]:7000"));
        assert_eq!(parse("[::1]", 1), Ok(HostPort { host: "::1".to_owned(), port: 1 }));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", ":6379"] {
            check(text, Err(HostError::Empty));
        }
        for text in ["host:", "host:0", "host:65536", "host:+1", "host:x", "[::1]:", "[::1]:x", "[::1]:1:2"] {
            check(text, Err(HostError::Port));
        }
        for text in [
            "::1",
            "1.2.3",
            "1.2.3.4.5",
            "999.0.0.1",
            "6379",
            "[::1",
            "[::1]6379",
            "[host]",
            "[fe80::1%eth0]",
            "a b",
            "a..b",
            ".",
            "höst",
            "host\n",
            "a%41",
        ] {
            check(text, Err(HostError::NotAHost));
        }
        check(&"a".repeat(64), Err(HostError::NotAHost));
        check(&"a.".repeat(127), Err(HostError::NotAHost));
        for text in ["0.0.0.0", "[::]:6379"] {
            check(text, Err(HostError::Wildcard));
        }
    }

    #[test]
    fn lists_name_each_host_once() {
        check_list("h1,h2:26380,[::1],10.0.0.1:1", Ok(&["h1:26379", "h2:26380", "[::1]:26379", "10.0.0.1:1"]));
        check_list("h:1,h:2", Ok(&["h:1", "h:2"]));
        check_list("h1,,h2", Err(HostsError::Host(2, HostError::Empty)));
        check_list("h1,", Err(HostsError::Host(2, HostError::Empty)));
        check_list(",h1", Err(HostsError::Host(1, HostError::Empty)));
        check_list("h1,h2:x", Err(HostsError::Host(2, HostError::Port)));
        check_list("h1, h2", Err(HostsError::Host(2, HostError::NotAHost)));
        check_list("h1,h2,H1:26379", Err(HostsError::Twice(3, 1)));
    }
}
