//! HTTP as the tests speak it: no retries, no proxies, a deadline, and answers as plain data.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use reqwest::{ClientBuilder, Method, Version, header::HeaderMap};
use serde_json::{Value, json};
use sluicegate_wire::header;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

/// Longer than any time limit under test: who runs into this one hangs.
const DEADLINE: Duration = Duration::from_secs(30);

/// A client of one server on 127.0.0.1.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
}

impl Client {
    /// A client that comes from 127.0.0.1.
    ///
    /// # Errors
    /// When the client can't be built.
    pub fn new(port: u16) -> Result<Self> {
        Self::from_address(port, Ipv4Addr::LOCALHOST)
    }

    /// A client that comes from another loopback address, as another user would.
    ///
    /// # Errors
    /// When the client can't be built.
    pub fn from_address(port: u16, address: Ipv4Addr) -> Result<Self> {
        Self::build(port, builder().local_address(IpAddr::V4(address)))
    }

    /// A client that opens a connection for each request.
    ///
    /// # Errors
    /// When the client can't be built.
    pub fn new_unkept(port: u16) -> Result<Self> {
        Self::build(port, builder().pool_max_idle_per_host(0))
    }

    /// A client that sends all of its requests on one HTTP/2 connection.
    ///
    /// # Errors
    /// When the client can't be built.
    pub fn new_http2(port: u16) -> Result<Self> {
        Self::build(port, builder().http2_prior_knowledge())
    }

    /// Sends a request without a body.
    ///
    /// # Errors
    /// When no whole answer arrives.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        let mut request = self.http.request(method, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    }

    /// Sends a request with this body.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_body(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Answer> {
        Answer::of(self.http.request(method, format!("{}{path}", self.base)).body(body)).await
    }

    /// The same with headers.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_with_body(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer> {
        let mut request = self.http.request(method, format!("{}{path}", self.base)).body(body.to_owned());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::of(request).await
    }

    /// GET without headers.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, &[]).await
    }

    /// `POST /v1/check` with this body.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn check(&self, body: &Value) -> Result<Answer> {
        self.post("/v1/check", body).await
    }

    /// POST with this body.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        Answer::of(self.http.post(format!("{}{path}", self.base)).json(body)).await
    }

    /// PUT with this body.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn put(&self, path: &str, body: &Value) -> Result<Answer> {
        Answer::of(self.http.put(format!("{}{path}", self.base)).json(body)).await
    }

    /// Takes `cost` tokens of one policy for one subject.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn take(&self, policy: &str, key: &str, cost: u64) -> Result<Answer> {
        self.check(&json!({ "checks": [{ "policy": policy, "key": key, "cost": cost }] })).await
    }

    fn build(port: u16, builder: ClientBuilder) -> Result<Self> {
        Ok(Self { http: builder.build()?, base: format!("http://127.0.0.1:{port}") })
    }
}

fn builder() -> ClientBuilder {
    reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).timeout(DEADLINE)
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The version of HTTP.
    pub version: Version,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
    /// The time from sending the request to the end of the answer.
    pub elapsed: Duration,
}

impl Answer {
    async fn of(request: reqwest::RequestBuilder) -> Result<Self> {
        let start = Instant::now();
        let response = request.send().await?;
        let (status, version, headers) = (response.status().as_u16(), response.version(), response.headers().clone());
        let body = response.bytes().await?.to_vec();
        Ok(Self { status, version, headers, body, elapsed: start.elapsed() })
    }

    /// A header that is there once, as text; none when absent.
    ///
    /// # Panics
    /// When the header is there twice or is not printable ASCII.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let value = values.next()?;
        assert!(values.next().is_none(), "{name} is there twice");
        Some(value.to_str().unwrap_or_else(|_| panic!("{name} is {value:?}")))
    }

    /// Why the filter answered or marked the answer.
    ///
    /// # Panics
    /// As [`Answer::header`].
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        self.header(header::REASON)
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is something else.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Sends bytes as they are, over a connection of their own, and returns the head of the answer with invalid UTF-8
/// replaced: for what no HTTP library lets a test send.
///
/// # Errors
/// When the server can't be reached, closes before the head is whole, or hangs.
pub async fn exchange(port: u16, request: &[u8]) -> Result<String> {
    exchange_over(TcpStream::connect(("127.0.0.1", port)).await?, request).await
}

/// The same over a connection of the caller's.
///
/// # Errors
/// When the server closes before the head is whole, or hangs.
pub async fn exchange_over(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> Result<String> {
    timeout(DEADLINE, async {
        stream.write_all(request).await?;
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            // A byte at a time, so as to read nothing of the body; heads are short.
            answer.push(stream.read_u8().await?);
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    })
    .await
    .context("the server neither answered nor closed")?
}
