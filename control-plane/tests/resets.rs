//! A stall of the service, seen over HTTP/2.

mod service;

use hyper::{Request, StatusCode, body::Bytes, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::Signal;
use tokio::net::TcpStream;

use service::Service;

type Body = axum::body::Body;

/// More than hyper's own bound, which is 20.
const GIVEN_UP: usize = 60;

/// A proxy resets every request whose time is over. When the service goes on it sees them all at once, and the request
/// that is still waited for must be answered on that connection.
#[tokio::test]
async fn requests_given_up_during_a_stall_do_not_cost_the_connection() {
    let service = Service::start("0s");
    let stream = TcpStream::connect(service.data).await.unwrap();
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection): (http2::SendRequest<Body>, _) = handshake.unwrap();
    tokio::spawn(connection);
    let healthz = || {
        let uri = format!("http://{}/healthz", service.data);
        Request::get(uri).body(Body::from(Bytes::new())).unwrap()
    };
    assert_eq!(sender.send_request(healthz()).await.unwrap().status(), StatusCode::OK);

    service.signal(Signal::STOP);
    for _ in 0..GIVEN_UP {
        let request = tokio::spawn(sender.send_request(healthz()));
        // Lets the connection write the request before it is given up.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        request.abort();
        assert!(request.await.is_err());
    }
    let waited_for = tokio::spawn(sender.send_request(healthz()));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    service.signal(Signal::CONT);
    assert_eq!(waited_for.await.unwrap().unwrap().status(), StatusCode::OK);
}
