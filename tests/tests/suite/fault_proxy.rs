//! Each way in which the proxy spoils a connection, seen by a client that talks to a real Redis through it.

use std::{
    io::ErrorKind,
    time::{Duration, Instant},
};

use sluicegate_tests::{FaultProxy, Redis, Traffic, until};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Within this, an answer that comes at all is there; and for this long a test looks at one that must not come.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

struct Raw(TcpStream);

impl Raw {
    async fn connect(proxy: &FaultProxy) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    async fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.unwrap();
    }

    async fn expect(&mut self, answer: &str) {
        let mut got = vec![0; answer.len()];
        timeout(LONG, self.0.read_exact(&mut got)).await.expect("an answer").unwrap();
        assert_eq!(String::from_utf8_lossy(&got), answer);
    }

    async fn ping(&mut self) {
        self.send("PING\r\n").await;
        self.expect("+PONG\r\n").await;
    }

    /// All bytes up to the end of the stream. A reset is an end too.
    async fn rest(&mut self) -> String {
        let mut got = Vec::new();
        let _ = timeout(LONG, self.0.read_to_end(&mut got)).await.expect("an end");
        String::from_utf8(got).unwrap()
    }
}

async fn behind_proxy() -> (Redis, FaultProxy) {
    let redis = Redis::start().await.unwrap();
    let proxy = FaultProxy::start(redis.port()).await.unwrap();
    (redis, proxy)
}

#[tokio::test]
async fn passing_connections_are_counted() {
    let (mut redis, proxy) = behind_proxy().await;
    let (mut one, mut two) = (Raw::connect(&proxy).await, Raw::connect(&proxy).await);
    one.ping().await;
    two.ping().await;
    assert_eq!((proxy.accepted(), proxy.open()), (2, 2));

    drop(one);
    until("one connection to be closed", LONG, async || (proxy.open() == 1).then_some(())).await.unwrap();
    redis.kill();
    assert_eq!(two.rest().await, "");
    drop(two);
    until("both connections to be closed", LONG, async || (proxy.open() == 0).then_some(())).await.unwrap();
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn refusing_closes_what_exists_and_lets_nobody_in() {
    let (_redis, proxy) = behind_proxy().await;
    let mut before = Raw::connect(&proxy).await;
    before.ping().await;

    proxy.set(Traffic::Refuse).await.unwrap();
    assert_eq!(proxy.open(), 0);
    assert_eq!(before.rest().await, "");
    let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);

    proxy.set(Traffic::Pass).await.unwrap();
    Raw::connect(&proxy).await.ping().await;
    assert_eq!(proxy.accepted(), 2);
}

#[tokio::test]
async fn dropping_hangs_and_what_was_sent_arrives_afterwards() {
    let (_redis, proxy) = behind_proxy().await;
    let mut before = Raw::connect(&proxy).await;
    before.ping().await;

    proxy.set(Traffic::Drop).await.unwrap();
    before.send("ECHO late\r\n").await;
    assert!(timeout(SHORT, before.0.read_u8()).await.is_err(), "an answer or an end");
    let mut connecting = Box::pin(TcpStream::connect(("127.0.0.1", proxy.port())));
    assert!(timeout(SHORT, &mut connecting).await.is_err(), "connected or refused");

    proxy.set(Traffic::Pass).await.unwrap();
    before.expect("$4\r\nlate\r\n").await;
    let mut after = Raw(timeout(LONG, connecting).await.expect("a connection").unwrap());
    after.ping().await;
    assert_eq!((proxy.accepted(), proxy.open()), (2, 2), "the proxy's own connections don't count");
}

#[tokio::test]
async fn a_proxy_can_drop_and_refuse_from_the_start() {
    let redis = Redis::start().await.unwrap();
    let proxy = FaultProxy::start_with(redis.port(), Traffic::Drop).await.unwrap();
    let address = ("127.0.0.1", proxy.port());
    assert!(timeout(SHORT, TcpStream::connect(address)).await.is_err(), "connected or refused");

    proxy.set(Traffic::Refuse).await.unwrap();
    assert_eq!(TcpStream::connect(address).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let proxy = FaultProxy::start_with(redis.port(), Traffic::Refuse).await.unwrap();
    let refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

/// Each answer is late by both directions' delay, and many on their way at once are late together.
#[tokio::test]
async fn a_delay_is_a_latency_and_no_throttle() {
    const DELAY: Duration = Duration::from_millis(100);
    let (_redis, proxy) = behind_proxy().await;
    let mut client = Raw::connect(&proxy).await;
    client.ping().await;

    proxy.set(Traffic::Delay(DELAY)).await.unwrap();
    let start = Instant::now();
    for number in 1000..1100 {
        client.send(&format!("ECHO {number}\r\n")).await;
    }
    for number in 1000..1100 {
        client.expect(&format!("$4\r\n{number}\r\n")).await;
        assert!(start.elapsed() >= 2 * DELAY, "{:?}", start.elapsed());
    }
    assert!(start.elapsed() < 20 * DELAY, "one after the other: {:?}", start.elapsed());

    // What is under way is late no more once the delay is gone.
    proxy.set(Traffic::Delay(Duration::from_secs(600))).await.unwrap();
    client.send("PING\r\n").await;
    proxy.set(Traffic::Pass).await.unwrap();
    client.expect("+PONG\r\n").await;
}

#[tokio::test]
async fn a_trickle_comes_byte_by_byte() {
    const PAUSE: Duration = Duration::from_millis(20);
    let (_redis, proxy) = behind_proxy().await;
    let mut client = Raw::connect(&proxy).await;
    proxy.set(Traffic::Trickle(PAUSE)).await.unwrap();
    let start = Instant::now();
    client.ping().await;
    let bytes = u32::try_from("+PONG\r\n".len()).unwrap();
    assert!(start.elapsed() >= (bytes - 1) * PAUSE, "{:?}", start.elapsed());

    proxy.set(Traffic::Trickle(Duration::from_secs(600))).await.unwrap();
    client.send("PING\r\n").await;
    client.expect("+").await;
    assert!(timeout(SHORT, client.0.read_u8()).await.is_err(), "more than a byte");
    proxy.set(Traffic::Pass).await.unwrap();
    client.expect("PONG\r\n").await;
}

#[tokio::test]
async fn a_reply_is_cut_off_once_the_server_has_what_was_looked_for() {
    let (redis, proxy) = behind_proxy().await;
    let (mut struck, mut other) = (Raw::connect(&proxy).await, Raw::connect(&proxy).await);
    proxy.cut_reply(b"needle", 3);
    other.ping().await;
    // The answer to the first command shows that the needle's first half was passed on by itself.
    struck.send("PING\r\nECHO nee").await;
    struck.expect("+PONG\r\n").await;
    assert_eq!(proxy.cuts(), 0);
    struck.send("dle\r\n").await;
    assert_eq!(struck.rest().await, "$6\r");
    assert_eq!(proxy.cuts(), 1);
    other.ping().await;

    let mut struck = Raw::connect(&proxy).await;
    proxy.cut_reply(b"SET key", 0);
    struck.send("SET key value EX 100\r\n").await;
    assert_eq!(struck.rest().await, "");
    assert_eq!(proxy.cuts(), 2);
    assert_eq!(redis.assert_all_keys_expire(), 1, "the server ran what it never could answer");

    // An order strikes once.
    let mut after = Raw::connect(&proxy).await;
    after.send("SET key value EX 100\r\n").await;
    after.expect("+OK\r\n").await;
}
