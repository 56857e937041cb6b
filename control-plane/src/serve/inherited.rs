//! Sockets that whoever started this process listens at already (`sd_listen_fds(3)`): they are never closed between one
//! process and the next, so no connection is lost.

use std::{io, net, os::unix::net as unix};

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;

const NAMES: &str = "LISTEN_FDNAMES";
const KNOWN: &str = "name them data and admin (systemd: FileDescriptorName=), or pass two without names, data first";

/// The sockets passed to this process.
#[derive(Debug, Default)]
pub struct Inherited {
    pub(super) data: Option<InheritedSocket>,
    pub(super) admin: Option<InheritedSocket>,
}

/// One of them.
#[derive(Debug)]
pub(super) enum InheritedSocket {
    Tcp(net::TcpListener),
    Unix(unix::UnixListener),
}

/// Why they can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InheritedError {
    /// It is none that the service has a use for, or is there twice.
    #[error("LISTEN_FDNAMES: there is no use for a socket {0:?} in this place; {KNOWN}")]
    Name(String),
    /// There are more than there are names.
    #[error("LISTEN_FDS: {0} sockets, and not as many names; {KNOWN}")]
    Count(usize),
    /// It is something else.
    #[error("the socket {name:?} that was passed can't be listened at: {error}")]
    Socket {
        /// Its name.
        name: String,
        /// Why.
        error: io::Error,
    },
}

impl Inherited {
    /// Those that `LISTEN_FDS`, `LISTEN_PID` and `LISTEN_FDNAMES` name. Must be called once, before there are threads:
    /// it takes the first two out of the environment.
    ///
    /// # Errors
    /// When one of them is of no use.
    pub fn from_environment() -> Result<Self, InheritedError> {
        let mut passed = ListenFd::from_env();
        let names = std::env::var(NAMES).unwrap_or_default();
        let names = match passed.len() {
            0 => return Ok(Self::default()),
            // This is what systemd says where nothing is said.
            count if names.split(':').all(|name| name.is_empty() || name == "unknown") && count <= 2 => "data:admin",
            count if names.split(':').count() == count => &names,
            count => return Err(InheritedError::Count(count)),
        };
        let mut inherited = Self::default();
        for (index, name) in names.split(':').enumerate().take(passed.len()) {
            let place = match name {
                "data" => &mut inherited.data,
                "admin" => &mut inherited.admin,
                _ => return Err(InheritedError::Name(name.to_owned())),
            };
            let socket =
                take(&mut passed, index).map_err(|error| InheritedError::Socket { name: name.to_owned(), error })?;
            if place.replace(socket).is_some() {
                return Err(InheritedError::Name(name.to_owned()));
            }
        }
        Ok(inherited)
    }
}

fn take(passed: &mut ListenFd, index: usize) -> io::Result<InheritedSocket> {
    let not_listening = || io::Error::other("nobody listens there");
    if let Ok(Some(socket)) = passed.take_unix_listener(index) {
        socket.set_nonblocking(true)?;
        return if socket_acceptconn(&socket)? { Ok(InheritedSocket::Unix(socket)) } else { Err(not_listening()) };
    }
    let socket = passed.take_tcp_listener(index)?.ok_or_else(not_listening)?;
    socket.set_nonblocking(true)?;
    if socket_acceptconn(&socket)? { Ok(InheritedSocket::Tcp(socket)) } else { Err(not_listening()) }
}
