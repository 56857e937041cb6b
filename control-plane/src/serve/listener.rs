//! An open listener, over TCP or in the file system.

use std::{
    fmt, io,
    os::unix::fs::FileTypeExt as _,
    path::{Path, PathBuf},
};

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::config::Address;

/// A listener and its real address.
#[derive(Debug)]
pub(super) struct Listener {
    socket: Socket,
    address: Address,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix { socket: UnixListener, _file: SocketFile },
}

/// One connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Listener {
    /// Listens on an address. A socket file that nobody listens on any more is replaced.
    pub(super) async fn bind(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => {
                let socket = TcpListener::bind(address).await?;
                let address = Address::Tcp(socket.local_addr()?);
                Ok(Self { socket: Socket::Tcp(socket), address })
            }
            Address::Unix(path) => {
                remove_stale(path).await?;
                let socket = UnixListener::bind(path)?;
                let socket = Socket::Unix { socket, _file: SocketFile(path.clone()) };
                Ok(Self { socket, address: address.clone() })
            }
        }
    }

    /// The address, with the port that the system chose where port 0 was asked for.
    pub(super) const fn address(&self) -> &Address {
        &self.address
    }

    /// The next connection; may be dropped while it waits.
    pub(super) async fn accept(&self) -> io::Result<Stream> {
        match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                // Answers are small and waited for: Nagle's algorithm would hold them back. Failing means that the
                // connection is gone already, which its reader will see.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            Socket::Unix { socket, .. } => socket.accept().await.map(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(formatter)
    }
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
