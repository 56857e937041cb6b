//! How fast a check can be answered at all: an axum server that parses the question and gives the same answer to each.
//! Any other path is answered with a few bytes, for a proxy in front.
//!
//! `bare-server PORT ANSWER.json`
#![forbid(unsafe_code)]

use std::{env, fs, sync::Arc};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode},
    routing::post,
};
use serde::Deserialize;
use sluicegate_wire::CheckRequest;
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Answer {
    headers: Vec<(String, String)>,
    body: String,
}

struct Ready {
    headers: HeaderMap,
    body: Bytes,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let (port, file) = arguments.next().zip(arguments.next()).context("bare-server PORT ANSWER.json")?;
    let answer: Answer = serde_json::from_slice(&fs::read(&file).context(file)?).context("the answer")?;
    let mut headers = HeaderMap::new();
    for (name, value) in &answer.headers {
        headers.append(HeaderName::try_from(name)?, HeaderValue::try_from(value)?);
    }
    let ready = Arc::new(Ready { headers, body: answer.body.into() });
    let app = Router::new().route("/v1/check", post(check)).fallback(|| async { "hello\n" }).with_state(ready);
    let listener = TcpListener::bind(("127.0.0.1", port.parse().context("PORT")?)).await?;
    axum::serve(listener, app).await?;
    Ok(())
}

async fn check(State(ready): State<Arc<Ready>>, question: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    match serde_json::from_slice::<CheckRequest>(&question) {
        Ok(question) if !question.checks.is_empty() => {
            *response.headers_mut() = ready.headers.clone();
            *response.body_mut() = ready.body.clone().into();
        }
        _ => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}
