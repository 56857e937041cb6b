//! What callers see of a service that stops.

mod service;

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

use hyper::{
    Request, StatusCode,
    body::{Body, Bytes, Frame},
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::Signal;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, sync::oneshot, time::timeout};

use service::{Http1, Service, until};

const DRAIN: Duration = Duration::from_secs(2);

/// Starts a service and stops it; from then on it drains for [`DRAIN`].
async fn stop(service: &Service) {
    service.signal(Signal::TERM);
    until("the service is unready", async || {
        let head = Http1::connect(service.admin).await.get("/readyz").await;
        head.contains("connection: close").then_some(())
    })
    .await;
}

#[tokio::test]
async fn over_http_1_everything_is_answered_and_idle_connections_close_last() {
    let mut service = Service::start("2s");
    let mut kept = Http1::connect(service.data).await;
    assert!(!kept.get("/healthz").await.contains("connection: close"));
    let mut idle = Http1::connect(service.data).await;
    assert!(idle.get("/healthz").await.starts_with("http/1.1 200 "));
    let mut slow = Http1::connect(service.data).await;
    slow.write("POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 13\r\nexpect: 100-continue\r\n\r\n")
        .await;
    // The handler waits for the body now.
    assert!(slow.answer().await.starts_with("http/1.1 100 "));

    let stopped = Instant::now();
    stop(&service).await;

    for mut connection in [kept, Http1::connect(service.data).await] {
        let head = connection.get("/healthz").await;
        assert!(head.starts_with("http/1.1 200 ") && head.contains("connection: close"), "{head}");
        connection.closed().await;
    }
    idle.closed().await;
    assert!(stopped.elapsed() >= DRAIN, "an idle connection was closed after {:?}", stopped.elapsed());
    until("nothing is accepted", async || TcpStream::connect(service.data).await.err()).await;

    slow.write(r#"{"checks":[]}"#).await;
    let head = slow.answer().await;
    assert!(head.starts_with("http/1.1 200 ") && head.contains("x-sluicegate: "), "{head}");
    slow.closed().await;
    assert_eq!(service.ended().await.code(), Some(0));
}

#[tokio::test]
async fn over_http_2_connections_go_away_and_requests_in_flight_finish() {
    let mut service = Service::start("2s");
    let mut kept = connect(&service).await;
    let (release, held) = Held::new();
    let request = Request::post("http://test/v1/check").body(held).unwrap();
    let in_flight = tokio::spawn(kept.send_request(request));
    // Frames are read in order: with this answer, the service knows of the request before it as well.
    assert_eq!(get(&mut kept, "/healthz").await, StatusCode::OK);

    stop(&service).await;

    // The client refuses by itself to send on a connection that was told to go away.
    until("the connection is told to go away", async || kept.send_request(empty("/healthz")).await.err()).await;
    assert!(!in_flight.is_finished());
    let mut fresh = connect(&service).await;
    assert_eq!(get(&mut fresh, "/healthz").await, StatusCode::OK);
    assert_eq!(get(&mut fresh, "/readyz").await, StatusCode::SERVICE_UNAVAILABLE);
    until("nothing is accepted", async || TcpStream::connect(service.data).await.err()).await;

    release.send(Bytes::from_static(br#"{"checks":[]}"#)).unwrap();
    assert_eq!(in_flight.await.unwrap().unwrap().status(), StatusCode::OK);
    assert_eq!(service.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_at_once() {
    for (second, code) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let mut service = Service::start("1h");
        stop(&service).await;
        service.signal(second);
        assert_eq!(service.ended().await.code(), Some(code));
    }
}

#[tokio::test]
async fn without_a_drain_time_the_end_comes_when_the_last_request_is_answered() {
    let mut service = Service::start("0s");
    assert!(Http1::connect(service.admin).await.get("/healthz").await.starts_with("http/1.1 200 "));
    service.signal(Signal::INT);
    assert_eq!(service.ended().await.code(), Some(0));
}

/// Its caller was told nothing yet, and its request is on the way.
#[tokio::test]
async fn a_connection_that_has_not_asked_yet_is_still_answered() {
    let mut service = Service::start("0s");
    let mut early = Http1::connect(service.data).await;
    // Connections are accepted in their order.
    assert!(Http1::connect(service.data).await.get("/healthz").await.starts_with("http/1.1 200 "));
    service.signal(Signal::TERM);
    until("nothing is accepted", async || TcpStream::connect(service.data).await.err()).await;
    let head = early.get("/healthz").await;
    assert!(head.starts_with("http/1.1 200 ") && head.contains("connection: close"), "{head}");
    early.closed().await;
    assert_eq!(service.ended().await.code(), Some(0));
}

/// Asks on and reads nothing: its answers can't be finished.
#[tokio::test]
async fn whoever_does_not_read_keeps_the_process_for_ten_seconds_at_most() {
    let mut service = Service::start("0s");
    let mut deaf = TcpStream::connect(service.data).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    while timeout(Duration::from_millis(500), deaf.write_all(request)).await.is_ok() {}
    let stopped = Instant::now();
    service.signal(Signal::TERM);
    assert_eq!(service.ended().await.code(), Some(0));
    assert!(stopped.elapsed() < Duration::from_secs(15), "{:?}", stopped.elapsed());
}

/// An HTTP/2 connection, which lives on its own.
async fn connect(service: &Service) -> SendRequest<Held> {
    let stream = TcpStream::connect(service.data).await.unwrap();
    let (sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    sender
}

async fn get(sender: &mut SendRequest<Held>, path: &str) -> StatusCode {
    let response = sender.send_request(empty(path)).await.unwrap();
    assert!(response.headers().get("connection").is_none());
    response.status()
}

fn empty(path: &str) -> Request<Held> {
    Request::get(format!("http://test{path}")).body(Held(None)).unwrap()
}

/// A body whose one piece comes when it is released.
struct Held(Option<oneshot::Receiver<Bytes>>);

impl Held {
    fn new() -> (oneshot::Sender<Bytes>, Self) {
        let (release, piece) = oneshot::channel();
        (release, Self(Some(piece)))
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = oneshot::error::RecvError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let Some(piece) = &mut self.0 else { return Poll::Ready(None) };
        let piece = ready!(Pin::new(piece).poll(context));
        self.0 = None;
        Poll::Ready(Some(piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }
}
