//! One connection through the proxy.

use std::{
    io,
    ops::ControlFlow,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex as AsyncMutex, mpsc, watch},
    time::sleep_until,
};

use super::{
    Shared, Traffic,
    cut::{Due, Sent},
};

/// The most that is read at once, in bytes, and how many such reads may wait for their time: 16 MiB a direction.
const READ: usize = 16 * 1024;
const WAITING: usize = 1024;

/// Passes bytes on until both sides have closed, one has failed, or the proxy is told to refuse.
pub(super) async fn run(client: TcpStream, target: u16, shared: Arc<Shared>) {
    shared.accepted.fetch_add(1, Ordering::SeqCst);
    shared.open.fetch_add(1, Ordering::SeqCst);
    let _open = Open(&shared.open);
    let mut traffic = shared.traffic.subscribe();
    tokio::select! {
        _ = traffic.wait_for(|traffic| *traffic == Traffic::Refuse) => {}
        // An error closes both sides: all that the proxy can do for either.
        _ = relay(client, target, &shared) => {}
    }
}

struct Open<'a>(&'a AtomicUsize);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn relay(client: TcpStream, target: u16, shared: &Shared) -> io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", target)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (asked, asked_out) = mpsc::channel(WAITING);
    let (answered, answered_out) = mpsc::channel(WAITING);
    let reply = Reply { due: Mutex::new(None), sending: AsyncMutex::new(()) };
    tokio::try_join!(
        read(from_client, asked, shared.traffic.subscribe()),
        pass_on_requests(asked_out, to_server, shared, &reply),
        read(from_server, answered, shared.traffic.subscribe()),
        pass_on_replies(answered_out, to_client, shared, &reply),
    )?;
    Ok(())
}

/// Bytes and when they arrived; none at the end of the stream.
struct Chunk {
    bytes: Vec<u8>,
    read_at: Instant,
}

/// What the two directions of a connection tell each other about a reply to cut off.
struct Reply {
    due: Mutex<Option<Due>>,
    /// Held while a request is written, so that its reply isn't cut off, and the connection closed, in the middle.
    sending: AsyncMutex<()>,
}

async fn read(
    mut from: OwnedReadHalf,
    queue: mpsc::Sender<Chunk>,
    mut traffic: watch::Receiver<Traffic>,
) -> io::Result<()> {
    let mut buffer = vec![0; READ];
    loop {
        // What is dropped stays with the sender's kernel, as what was sent in vain does.
        let _ = traffic.wait_for(|traffic| *traffic != Traffic::Drop).await;
        let length = from.read(&mut buffer).await?;
        let chunk = Chunk { bytes: buffer[..length].to_vec(), read_at: Instant::now() };
        // An error means that the other side is closed.
        if queue.send(chunk).await.is_err() || length == 0 {
            return Ok(());
        }
    }
}

async fn pass_on_requests(
    mut queue: mpsc::Receiver<Chunk>,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    reply: &Reply,
) -> io::Result<()> {
    let mut traffic = shared.traffic.subscribe();
    let mut sent = Sent::default();
    while let Some(Chunk { bytes, read_at }) = queue.recv().await {
        due(&mut traffic, read_at).await;
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        let _sending = reply.sending.lock().await;
        // Before the write: the reply may come before the write returns.
        let cut = sent.extend(&bytes, &mut shared.cut.lock().unwrap());
        if cut.is_some() {
            *reply.due.lock().unwrap() = cut;
        }
        to.write_all(&bytes).await?;
    }
    Ok(())
}

async fn pass_on_replies(
    mut queue: mpsc::Receiver<Chunk>,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    reply: &Reply,
) -> io::Result<()> {
    let mut traffic = shared.traffic.subscribe();
    while let Some(Chunk { bytes, read_at }) = queue.recv().await {
        due(&mut traffic, read_at).await;
        let cut = reply.due.lock().unwrap().filter(|due| read_at >= due.since && !bytes.is_empty());
        if let Some(Due { keep_bytes, .. }) = cut {
            let _sending = reply.sending.lock().await;
            to.write_all(&bytes[..keep_bytes.min(bytes.len())]).await?;
            shared.cuts.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        let mut rest = bytes.as_slice();
        while let ControlFlow::Continue(left) = write_some(&mut traffic, read_at, &mut to, rest).await? {
            rest = left;
        }
    }
    Ok(())
}

/// Writes as much as may go at once, and breaks when that is all.
async fn write_some<'a>(
    traffic: &mut watch::Receiver<Traffic>,
    read_at: Instant,
    to: &mut OwnedWriteHalf,
    bytes: &'a [u8],
) -> io::Result<ControlFlow<(), &'a [u8]>> {
    due(traffic, read_at).await;
    let Traffic::Trickle(pause) = *traffic.borrow_and_update() else {
        to.write_all(bytes).await?;
        return Ok(ControlFlow::Break(()));
    };
    let (first, rest) = bytes.split_at(1);
    to.write_all(first).await?;
    tokio::select! {
        () = sleep_until((Instant::now() + pause).into()) => {}
        _ = traffic.changed() => {}
    }
    Ok(if rest.is_empty() { ControlFlow::Break(()) } else { ControlFlow::Continue(rest) })
}

/// Waits until bytes that were read then may be passed on.
async fn due(traffic: &mut watch::Receiver<Traffic>, read_at: Instant) {
    loop {
        let now = *traffic.borrow_and_update();
        match now {
            Traffic::Pass | Traffic::Refuse | Traffic::Trickle(_) => return,
            Traffic::Drop => drop(traffic.changed().await),
            Traffic::Delay(delay) => {
                tokio::select! {
                    () = sleep_until((read_at + delay).into()) => return,
                    _ = traffic.changed() => {}
                }
            }
        }
    }
}
