//! Why one attempt of a call gave no reply, by what is known of the call.

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::StoreError;

/// Why an attempt gave no reply. A call is made again only after those by which the server proved that nothing ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Nothing ran: another server has the slot.
    Moved(Redirect),
    /// Nothing ran: another server has the key already, though not yet the slot.
    Ask(Redirect),
    /// Nothing ran, but may in a moment: a slot on its way, or a cluster that is about to fail over.
    Later(StoreError),
    /// Nothing ran, nor will it over this connection: the server has become a replica, or loads its data.
    Elsewhere(StoreError),
    /// It may have run, or it would fail again.
    Final(StoreError),
}

/// Where a server sends a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Redirect {
    /// The host; empty for the one that said so.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Failure {
    /// The failure in words for callers, when there is nothing more to try.
    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Later(error) | Self::Elsewhere(error) | Self::Final(error) => error,
            Self::Moved(_) | Self::Ask(_) => {
                StoreError::Refused("the server is part of a cluster; use a redis+cluster:// URL".to_owned())
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Final(error)
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        let redirect = || Redirect::parse(error.redirect_node()?.0);
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::Moved) => redirect().map(Self::Moved),
            ErrorKind::Server(ServerErrorKind::Ask) => redirect().map(Self::Ask),
            ErrorKind::Server(ServerErrorKind::TryAgain | ServerErrorKind::ClusterDown) => {
                return Self::Later(error.into());
            }
            ErrorKind::Server(
                ServerErrorKind::ReadOnly | ServerErrorKind::BusyLoading | ServerErrorKind::MasterDown,
            ) => return Self::Elsewhere(error.into()),
            // The login is no longer good for this connection; a new one logs in again.
            _ if error.code() == Some("NOAUTH") => return Self::Elsewhere(error.into()),
            _ => None,
        }
        .unwrap_or_else(|| Self::Final(error.into()))
    }
}

impl Redirect {
    /// Reads `host:port`, where the host may be empty or an IPv6 address without brackets.
    fn parse(address: &str) -> Option<Self> {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // `?` is a server that doesn't know its own name.
        let host = if host == "?" { "" } else { host };
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use redis::make_extension_error;

    use super::*;

    fn check_redirect(address: &str, expected: Option<(&str, u16)>) {
        let expected = expected.map(|(host, port)| Redirect { host: host.to_owned(), port });
        assert_eq!(Redirect::parse(address), expected, "{address}");
    }

    #[test]
    fn redirects_are_read() {
        check_redirect("10.0.0.1:6381", Some(("10.0.0.1", 6381)));
        check_redirect("redis-1.example:7000", Some(("redis-1.example", 7000)));
        check_redirect(":6381", Some(("", 6381)));
        check_redirect("?:6381", Some(("", 6381)));
        check_redirect("fe80::1:7000", Some(("fe80::1", 7000)));
        check_redirect("[fe80::1]:7000", Some(("fe80::1", 7000)));
        check_redirect("10.0.0.1", None);
        check_redirect("10.0.0.1:x", None);
    }

    #[test]
    fn only_proof_that_nothing_ran_is_not_final() {
        let lost = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert!(matches!(Failure::from(lost), Failure::Final(StoreError::Unavailable(_))));
        for code in ["OOM", "BUSY", "NOPERM", "ERR", "WRONGTYPE", "MISCONF", "NOREPLICAS"] {
            let error = make_extension_error(code.to_owned(), None);
            assert!(matches!(Failure::from(error), Failure::Final(StoreError::Refused(_))), "{code}");
        }
    }
}
