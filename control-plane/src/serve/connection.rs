//! One connection: HTTP/1.1 or HTTP/2 with prior knowledge, told apart by its first bytes.

use std::{pin::pin, sync::Arc, time::Duration};

use axum::{Router, extract::Request, http::Version};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{SetOnce, watch},
    time::{Instant, sleep, timeout_at},
};
use tokio_rustls::TlsAcceptor;
use tower::Service as _;

use super::{Phase, stall::Unstalled};

/// The longest wait for the first request, from its connection on, TLS included. Nobody who means to ask takes that long.
const FIRST_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest wait for a request's head. In HTTP/1 that is also how long a connection may be idle, so it is longer
/// than the 60 s after which load balancers commonly close idle connections: the side that sends the requests must
/// be the one that closes, or a request meets a closed connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(75);

/// HTTP/2 connections are probed after this long without a frame…
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// …and closed when the probe isn't answered for this long.
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// Requests at once on one HTTP/2 connection. A proxy's worker sends all of its requests on one connection, and with
/// fewer they would queue there, out of their deadlines' sight.
const MAX_STREAMS: u32 = 1024;

/// A proxy resets the requests whose time is over, all at once after a stall of ours; hyper's bound of 20 would take that
/// for an attack and close the connection, with every other request on it.
const MAX_PENDING_RESETS: usize = MAX_STREAMS as usize;

/// The largest head of a request, in bytes; larger ones are answered with 431. What a proxy adds to a check is some 1 kB.
const MAX_HEAD_BYTES: u32 = 32 * 1024;

/// The longest wait for the first request on a connection that was open when the service stopped listening, or queued: it
/// is on the way, and its caller was told nothing yet.
const LATE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves one connection until it ends or is told to, with TLS where there is any.
pub(super) async fn serve<I>(stream: I, tls: Option<Arc<ServerConfig>>, router: Router, phase: watch::Receiver<Phase>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let by = Instant::now() + FIRST_TIMEOUT;
    let stream = Unstalled::new(stream);
    let Some(tls) = tls else { return serve_http(stream, router, phase, by).await };
    let done = tokio::select! {
        done = timeout_at(by, TlsAcceptor::from(tls).accept(stream)) => done,
        () = too_late(phase.clone()) => return,
    };
    match done {
        Ok(Ok(stream)) => serve_http(stream, router, phase, by).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
        Err(_) => tracing::debug!("no TLS within {FIRST_TIMEOUT:?}"),
    }
}

/// The first request must be there `by` then.
async fn serve_http<I>(stream: I, router: Router, phase: watch::Receiver<Phase>, by: Instant)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let version = Arc::new(SetOnce::new());
    let finish_due = finish_due(Arc::clone(&version), phase, by);
    let service = service_fn(move |request: Request<Incoming>| {
        if !version.initialized() {
            // Streams of one connection may race to be first; they say the same.
            let _ = version.set(request.version());
        }
        // A router is always ready.
        router.clone().call(request)
    });
    let builder = builder();
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        due = finish_due => match due {
            Due::Finish => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
            Due::Cut => return tracing::debug!("connection without a request: cut off"),
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}

/// How a connection should end.
enum Due {
    /// What it has begun is finished first.
    Finish,
    /// At once: it has begun nothing.
    Cut,
}

/// Waits until a connection should end.
///
/// - HTTP/2 can say so before it closes (GOAWAY, RFC 9113 section 6.8), so it does as soon as the service drains. A
///   connection opened while draining stays until the end: sent away again, the caller would only open another.
/// - HTTP/1 can only close, and a request on its way would be lost. So each answer says `connection: close`, and
///   only at the end are idle connections closed.
/// - Without a first request there is no reason to stay.
async fn finish_due(version: Arc<SetOnce<Version>>, mut phase: watch::Receiver<Phase>, by: Instant) -> Due {
    let opened = *phase.borrow();
    let asked = tokio::select! {
        asked = timeout_at(by, version.wait()) => asked,
        () = too_late(phase.clone()) => return Due::Cut,
    };
    let finish_in = match asked {
        Err(_) => return Due::Cut,
        Ok(&Version::HTTP_2) if opened == Phase::Serving => Phase::Draining,
        Ok(_) => Phase::Closing,
    };
    // An error means that the sender is gone, and the service with it.
    let _ = phase.wait_for(|phase| *phase >= finish_in).await;
    Due::Finish
}

/// Waits until there is no use in waiting for a first request.
async fn too_late(mut phase: watch::Receiver<Phase>) {
    // An error means that the sender is gone, and the service with it.
    let _ = phase.wait_for(|phase| *phase == Phase::Closing).await;
    sleep(LATE_TIMEOUT).await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // A client may close its side once it has asked, and still wants the answer.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES as usize)
        .half_close(true);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS);
    builder
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, duplex},
        time::Instant,
    };

    use super::*;

    /// Sends this and then nothing: how long until the connection is closed, without an answer.
    async fn check_closed(sent: &[u8]) {
        let (mut client, server) = duplex(1024);
        let (_phase, phase) = watch::channel(Phase::Serving);
        tokio::spawn(serve(server, None, Router::new(), phase));
        client.write_all(sent).await.unwrap();
        let (start, mut answer) = (Instant::now(), Vec::new());
        client.read_to_end(&mut answer).await.unwrap();
        let (waited, sent) = (start.elapsed(), String::from_utf8_lossy(sent));
        assert_eq!(answer, b"", "{sent:?}");
        assert!(waited.abs_diff(FIRST_TIMEOUT) < Duration::from_secs(1), "{sent:?}: closed after {waited:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_connects_and_does_not_ask_is_not_waited_for_forever() {
        check_closed(b"").await;
        check_closed(b"PRI * HTTP/2.0").await;
        check_closed(b"GET / HTTP/1.1\r\nhost: test\r\nx-slow: ").await;
    }
}
