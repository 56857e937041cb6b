//! What one caller can't take from the others.

mod service;

use std::{
    fs,
    net::SocketAddr,
    pin::{Pin, pin},
    time::{Duration, Instant},
};

use hyper::{Request, StatusCode, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustix::process::{Resource, Rlimit, getrlimit, prlimit};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use service::{Http1, Service, shell, until};

async fn healthy(address: SocketAddr) -> Http1 {
    let mut connection = Http1::connect(address).await;
    assert!(connection.get("/healthz").await.starts_with("http/1.1 200 "));
    connection
}

/// Opens connections that are kept, each with a request so that it is known to be accepted.
async fn fill(address: SocketAddr, count: usize) -> Vec<Http1> {
    let mut kept = Vec::new();
    for _ in 0..count {
        kept.push(healthy(address).await);
    }
    kept
}

#[tokio::test]
async fn too_many_connections_are_told_so_and_leave_the_admin_listener_alone() {
    let service = Service::configured("max_connections: 20");
    let mut kept = fill(service.data, 20).await;
    let (head, body) = Http1::connect(service.data).await.get_with("/v1/check", "").await;
    assert!(head.starts_with("http/1.1 503 ") && head.contains("x-sluicegate: "), "{head}");
    assert!(head.contains("connection: close") && head.contains("application/problem+json"), "{head}");
    assert!(body.contains("raise max_connections"), "{body}");
    // What restarts a process that doesn't answer must not restart one that is in demand.
    let _one_too_many = healthy(service.data).await;
    healthy(service.admin).await;
    assert_eq!(service.logged("there are as many connections as there may be; refusing more")["max_connections"], 20);

    // Beyond those that get an answer, connections are closed at once.
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(service.data).await.unwrap());
    }
    let last = silent.last_mut().unwrap();
    assert!(matches!(last.read(&mut [0]).await, Ok(0) | Err(_)));
    healthy(service.admin).await;
    assert!(kept[0].get("/healthz").await.starts_with("http/1.1 200 "));

    kept.truncate(10);
    until("there is room again", async || {
        let (head, _) = Http1::connect(service.data).await.get_with("/nowhere", "").await;
        head.starts_with("http/1.1 404 ").then_some(())
    })
    .await;
}

/// A process with few descriptors, all of whose connections are on the data listener.
#[tokio::test]
async fn without_descriptors_for_all_connections_the_admin_listener_has_its_own() {
    let service = Service::launched("", shell("ulimit -n 100 && exec \"$@\""));
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(TcpStream::connect(service.data).await.unwrap());
    }
    for _ in 0..20 {
        healthy(service.admin).await;
    }
    drop(silent);
    until("there is room again", async || {
        let (head, _) = Http1::connect(service.data).await.get_with("/nowhere", "").await;
        head.starts_with("http/1.1 404 ").then_some(())
    })
    .await;
}

/// With `max_connections` of half a million, which no process may have descriptors for by default, the log says so.
#[tokio::test]
async fn descriptors_are_raised_as_far_as_allowed() {
    let service =
        Service::launched("max_connections: 1000000", shell("ulimit -S -n 256 && ulimit -H -n 4000 && exec \"$@\""));
    let limits = fs::read_to_string(format!("/proc/{}/limits", service.pid().as_raw_nonzero())).unwrap();
    let files = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    assert_eq!(files.split_whitespace().skip(3).take(2).collect::<Vec<_>>(), ["4000", "4000"]);
    healthy(service.data).await;
}

/// Descriptors used up all the same: the listener waits for one without spinning, and goes on.
#[tokio::test]
async fn without_any_descriptor_the_listener_waits_for_one() {
    let service = Service::start("0s");
    let mut kept = fill(service.data, 2).await;
    let none = Rlimit { current: Some(1), maximum: getrlimit(Resource::Nofile).maximum };
    let before = prlimit(Some(service.pid()), Resource::Nofile, none).unwrap();
    let mut waiting = Http1::connect(service.data).await;
    waiting.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    service.logged("connections can't be accepted; trying on");
    let (start, used) = (Instant::now(), cpu_ticks(&service));
    // Those that are open are answered.
    let mut answered = 0;
    while start.elapsed() < Duration::from_secs(1) {
        assert!(kept[0].get("/healthz").await.starts_with("http/1.1 200 "));
        answered += 1;
        until("a moment passes", async || (start.elapsed().as_millis() > answered * 50).then_some(())).await;
    }
    // A loop that spins would use all of a second, which is 100 ticks.
    assert!(cpu_ticks(&service) - used < 50, "{} ticks", cpu_ticks(&service) - used);

    prlimit(Some(service.pid()), Resource::Nofile, before).unwrap();
    assert!(waiting.answer().await.starts_with("http/1.1 200 "));
}

/// The time of the processor that the service has had, in hundredths of a second.
fn cpu_ticks(service: &Service) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{}/stat", service.pid().as_raw_nonzero())).unwrap();
    // proc(5): utime and stime are the 14th and 15th field; the 2nd, in brackets, may have blanks.
    let fields: Vec<_> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test]
async fn a_head_or_a_body_that_is_too_large_is_told_so() {
    let service = Service::start("0s");
    let mut connection = Http1::connect(service.data).await;
    let (head, _) = connection.get_with("/healthz", &format!("x-large: {}\r\n", "x".repeat(20_000))).await;
    assert!(head.starts_with("http/1.1 200 "), "{head}");
    let (head, _) = connection.get_with("/healthz", &format!("x-large: {}\r\n", "x".repeat(40_000))).await;
    assert!(head.starts_with("http/1.1 431 "), "{head}");

    let mut connection = Http1::connect(service.data).await;
    connection.write("POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 300000\r\n\r\n").await;
    let head = connection.answer().await;
    assert!(head.starts_with("http/1.1 413 "), "{head}");

    let stream = TcpStream::connect(service.data).await.unwrap();
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = |size: usize| {
        let request = Request::get("http://test/healthz").header("x-large", "x".repeat(size));
        request.body(axum::body::Body::empty()).unwrap()
    };
    assert_eq!(sender.send_request(request(20_000)).await.unwrap().status(), StatusCode::OK);
    let refused = sender.send_request(request(40_000)).await;
    assert!(refused.is_err() || refused.unwrap().status() == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(sender.send_request(request(1)).await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn http_2_is_told_its_bounds() {
    let service = Service::start("0s");
    let mut stream = TcpStream::connect(service.data).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(head[3], 4, "not SETTINGS: {head:?}");
    let mut settings = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
    stream.read_exact(&mut settings).await.unwrap();
    let setting = |id: u8| {
        let found = settings.chunks_exact(6).find(|setting| setting[..2] == [0, id])?;
        Some(u32::from_be_bytes(found[2..].try_into().unwrap()))
    };
    // RFC 9113, section 6.5.2: MAX_CONCURRENT_STREAMS and MAX_HEADER_LIST_SIZE.
    assert_eq!((setting(3), setting(6)), (Some(1024), Some(32 * 1024)));
}

/// Each of these takes some ten seconds, and they don't wait for one another.
#[tokio::test]
async fn slow_callers_are_not_waited_for() {
    let service = Service::start("0s");
    let bounds = Duration::from_secs(8)..Duration::from_secs(15);
    let silent = async {
        let mut connection = Http1::connect(service.data).await;
        connection.closed().await;
    };
    let slow_head = async {
        let mut connection = Http1::connect(service.data).await;
        connection.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-slow: ").await;
        connection.closed().await;
    };
    let slow_body = async {
        let mut connection = Http1::connect(service.data).await;
        connection.write("POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 13\r\n\r\n{\"ch").await;
        let (head, body) = connection.whole_answer().await;
        assert!(head.starts_with("http/1.1 408 "), "{head}");
        assert!(body.contains("the body did not arrive in time"), "{body}");
    };
    // Asks on and reads nothing, until the service's answers fill all that is between; from then on it counts.
    let deaf = async {
        let socket = TcpSocket::new_v4().unwrap();
        // Small, so that a write waits for the service rather than for a third of some MB to be free.
        socket.set_send_buffer_size(4096).unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(service.data).await.unwrap();
        let mut went_on = Instant::now();
        while stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.is_ok() {
            went_on = Instant::now();
        }
        went_on.elapsed()
    };
    let start = Instant::now();
    let timed = async |caller: Pin<&mut dyn Future<Output = ()>>| {
        caller.await;
        start.elapsed()
    };
    let silent = pin!(silent);
    let slow_head = pin!(slow_head);
    let slow_body = pin!(slow_body);
    let times = tokio::join!(timed(silent), timed(slow_head), timed(slow_body), deaf);
    let times = [("silent", times.0), ("slow head", times.1), ("slow body", times.2), ("deaf", times.3)];
    for (what, time) in times {
        assert!(bounds.contains(&time), "{what}: {time:?}");
    }
    healthy(service.data).await;
}
