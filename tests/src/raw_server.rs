//! A TCP server that answers bytes, HTTP or not.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

/// Waits for the first bytes of each connection, answers with its bytes, and closes. It lives as long as the runtime it
/// was started on.
#[derive(Debug)]
pub struct RawServer {
    port: u16,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl RawServer {
    /// A server on a free port that gives this answer.
    ///
    /// # Errors
    /// When it can't listen.
    pub async fn start(answer: impl Into<Vec<u8>>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let answer = Arc::new(Mutex::new(answer.into()));
        let shared = Arc::clone(&answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Ok(Self { port, answer })
    }

    /// The answer from now on.
    ///
    /// # Panics
    /// Never: the lock is held for a move only.
    pub fn answer_with(&self, answer: impl Into<Vec<u8>>) {
        *self.answer.lock().unwrap() = answer.into();
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

async fn serve(mut stream: TcpStream, answer: Arc<Mutex<Vec<u8>>>) {
    // A client that left is no failure of the test.
    if stream.read(&mut [0; 65_536]).await.is_ok_and(|bytes| bytes > 0) {
        let answer = answer.lock().unwrap().clone();
        let _ = stream.write_all(&answer).await;
        let _ = stream.shutdown().await;
    }
}
