//! One request to a running service.

mod connect;
mod url;

use std::{path::PathBuf, time::Duration};

use axum::{
    body::{Body, to_bytes},
    http::{Method, Request, header},
};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use sluicegate_wire::{Problem, header::MARKER};
use tokio::time::timeout;

use crate::config::Secret;
use url::ServiceUrl;

/// How long an answer may take, connecting included.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest answer: policies by the thousand.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// A running service.
pub(super) struct Client {
    url: ServiceUrl,
    token: Option<Secret>,
    ca_file: Option<PathBuf>,
}

/// What it answered.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

/// Why there is no answer, or none to the question.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    #[error("--url: {0:?} is not a service's; use http://HOST:PORT, https://HOST:PORT or unix:/path")]
    Url(String),
    #[error("{url}: {error}")]
    Unreachable { url: String, error: String },
    #[error("{url}: no answer within {} s", PATIENCE.as_secs())]
    Timeout { url: String },
    #[error("{0}: what answers there is not sluicegate; is it the right port?")]
    Unmarked(String),
    #[error("the answer is none that this version knows: {0}; use the command of the service's version")]
    Unknown(serde_json::Error),
    #[error("{}", .problem.detail)]
    Refused { problem: Problem },
    #[error("{0}: {1}")]
    File(String, String),
}

impl ClientError {
    /// Whether the question was at fault.
    pub(super) fn is_input(&self) -> bool {
        match self {
            Self::Url(_) | Self::File(..) => true,
            Self::Refused { problem } => (400..500).contains(&problem.status),
            _ => false,
        }
    }
}

impl Client {
    pub(super) fn new(url: &str, token: Option<Secret>, ca_file: Option<PathBuf>) -> Result<Self, ClientError> {
        Ok(Self { url: url.parse()?, token, ca_file })
    }

    /// Sends a question; the answer to it is 2xx.
    pub(super) fn ask(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Answer, ClientError> {
        let answer = self.send(method, path, body)?;
        if (200..300).contains(&answer.status) { Ok(answer) } else { Err(answer.refusal()) }
    }

    /// Sends a question, and takes whatever the service answers.
    pub(super) fn send(&self, method: Method, path: &str, body: &impl Serialize) -> Result<Answer, ClientError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| self.unreachable(error))?;
        let mut body = serde_json::to_vec(body).map_err(ClientError::Unknown)?;
        // `()`, with which nothing is to be sent.
        if body == b"null" {
            body.clear();
        }
        runtime.block_on(async {
            let answered = timeout(PATIENCE, self.exchange(method, path, body)).await;
            answered.unwrap_or_else(|_| Err(ClientError::Timeout { url: self.url.to_string() }))
        })
    }

    async fn exchange(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Answer, ClientError> {
        let stream = connect::connect(&self.url, self.ca_file.as_deref()).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| self.unreachable(error))?;
        // Ends with the runtime at the latest.
        tokio::spawn(connection);
        let mut request =
            Request::builder().method(method).uri(self.url.path(path)).header(header::HOST, self.url.host());
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let request = request.header(header::CONTENT_TYPE, "application/json").body(Body::from(body));
        let request = request.map_err(|error| self.unreachable(error))?;
        let response = sender.send_request(request).await.map_err(|error| self.unreachable(error))?;
        if !response.headers().contains_key(MARKER) {
            return Err(ClientError::Unmarked(self.url.to_string()));
        }
        let status = response.status().as_u16();
        let body = to_bytes(Body::new(response.into_body()), MAX_ANSWER_BYTES).await;
        let body = body.map_err(|error| self.unreachable(error))?;
        Ok(Answer { status, body: body.to_vec() })
    }

    fn unreachable(&self, error: impl std::fmt::Display) -> ClientError {
        ClientError::Unreachable { url: self.url.to_string(), error: error.to_string() }
    }
}

impl Answer {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(ClientError::Unknown)
    }

    /// Why the question was refused.
    pub(super) fn refusal(&self) -> ClientError {
        match self.read::<Problem>() {
            Ok(problem) => ClientError::Refused { problem },
            Err(error) => error,
        }
    }
}
