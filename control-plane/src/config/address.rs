//! Where to listen.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
};

/// An address to listen on: `IP:port`, or `unix:` and an absolute path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP port; port 0 means one that is free.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl Address {
    /// Whether only this machine can connect.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Whether two listeners can't both have their address.
    pub(super) fn collides(&self, other: &Self) -> bool {
        !matches!(self, Self::Tcp(address) if address.port() == 0) && self == other
    }
}

/// Why a text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address to listen on; use IP:port such as 127.0.0.1:8080 or [::]:8080, or unix:/absolute/path")]
pub struct AddressError;

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.strip_prefix("unix:").map(Path::new) {
            Some(path) if path.is_absolute() => Ok(Self::Unix(path.to_owned())),
            Some(_) => Err(AddressError),
            None => text.parse().map(Self::Tcp).map_err(|_| AddressError),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(formatter),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, local: Option<bool>) {
        let address = text.parse::<Address>();
        assert_eq!(address.as_ref().ok().map(Address::is_local), local, "{text}");
        if let Ok(address) = address {
            assert_eq!(address.to_string(), text);
        }
    }

    #[test]
    fn addresses_are_ip_and_port_or_a_socket() {
        check("127.0.0.1:8080", Some(true));
        check("127.9.9.9:0", Some(true));
        check("[::1]:8080", Some(true));
        check("[::ffff:127.0.0.1]:8080", Some(true));
        check("unix:/run/sluicegate.sock", Some(true));
        check("0.0.0.0:8080", Some(false));
        check("[::]:8080", Some(false));
        check("10.0.0.1:8080", Some(false));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "8080", ":8080", "localhost:8080", "127.0.0.1", "127.0.0.1:65536", "unix:", "unix:relative"] {
            check(text, None);
        }
    }
}
