//! An open listener, over TCP or in the file system.

use std::{
    fmt, io,
    net::SocketAddr,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

use super::inherited::InheritedSocket;
use crate::config::Address;

/// Connections that wait to be accepted: what the system allows at most, usually 4096.
const BACKLOG: u32 = 4096;

/// A listener and its real address.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Socket,
    address: Address,
    /// Whether somebody else goes on listening at the socket when this process ends.
    inherited: bool,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    /// The file is removed with a socket that this process made.
    Unix(UnixListener, Option<SocketFile>),
}

/// One connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Listens on an address. A socket file that nobody listens on any more is replaced. With `reuse_port` other
    /// processes may listen there as well, and the system spreads connections over them.
    pub(super) async fn bind(address: &Address, reuse_port: bool) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let socket = tcp(*address, reuse_port)?;
                let address = Address::Tcp(socket.local_addr()?);
                Ok(Self { socket: Socket::Tcp(socket), address, inherited: false })
            }
            Address::Unix(path) => {
                remove_stale(path).await?;
                let socket = Socket::Unix(UnixListener::bind(path)?, Some(SocketFile(path.clone())));
                Ok(Self { socket, address: address.clone(), inherited: false })
            }
        }
    }

    /// Listens at a socket that was passed to this process.
    pub(super) fn inherit(socket: InheritedSocket) -> io::Result<Self> {
        let (socket, address) = match socket {
            InheritedSocket::Tcp(socket) => {
                let address = Address::Tcp(socket.local_addr()?);
                (Socket::Tcp(TcpListener::from_std(socket)?), address)
            }
            InheritedSocket::Unix(socket) => {
                let address = socket.local_addr()?;
                let path = address.as_pathname().unwrap_or_else(|| Path::new("(unnamed)")).to_owned();
                (Socket::Unix(UnixListener::from_std(socket)?, None), Address::Unix(path))
            }
        };
        Ok(Self { socket, address, inherited: true })
    }

    /// The address, with the port that the system chose where port 0 was asked for.
    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection; may be dropped while it waits.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Tcp(socket) => Ok(Stream::tcp(socket.accept().await?.0)),
            Socket::Unix(socket, _) => Ok(Stream::Unix(socket.accept().await?.0)),
        }
    }

    /// Stops listening. The connections that are queued would be reset, though their callers take them for open, so
    /// they are handed back; at a socket that was passed they stay for whoever listens there next.
    pub(super) fn close(self) -> Vec<Stream> {
        if self.inherited {
            return Vec::new();
        }
        // The sockets themselves are asked, since the runtime hears of a connection only a little later.
        match self.socket {
            Socket::Tcp(socket) => socket.into_std().map_or_else(
                |_| Vec::new(),
                |socket| {
                    queued(|| {
                        let (stream, _) = socket.accept()?;
                        stream.set_nonblocking(true)?;
                        TcpStream::from_std(stream).map(Stream::tcp)
                    })
                },
            ),
            Socket::Unix(socket, _file) => socket.into_std().map_or_else(
                |_| Vec::new(),
                |socket| {
                    queued(|| {
                        let (stream, _) = socket.accept()?;
                        stream.set_nonblocking(true)?;
                        UnixStream::from_std(stream).map(Stream::Unix)
                    })
                },
            ),
        }
    }
}

fn queued(mut accept: impl FnMut() -> io::Result<Stream>) -> Vec<Stream> {
    std::iter::from_fn(|| accept().ok()).collect()
}

impl Stream {
    fn tcp(stream: TcpStream) -> Self {
        // Answers are small and waited for: Nagle's algorithm would hold them back. Failing means that the connection is
        // gone already, which its reader will see.
        let _ = stream.set_nodelay(true);
        Self::Tcp(stream)
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(formatter)
    }
}

fn tcp(address: SocketAddr, reuse_port: bool) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Connections of a process before this one may linger at the port.
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(reuse_port)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A process that was killed leaves its socket file behind, and nothing can listen there until it is removed.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    if is_socket && UnixStream::connect(path).await.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Removes the socket's file with the listener.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = std::fs::remove_file(&self.0);
    }
}
