//! Who may ask: callers that present a token, where one is needed.

use std::sync::Arc;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use sha2::{Digest as _, Sha256};

use super::{dashboard, grpc_health, mark, respond::Refusal};
use crate::{
    config::{FileError, Secret, Tokens},
    renewed::Renewed,
};

/// Paths that never need a token: who asks for health is often something that can't have one.
const OPEN: [&str; 3] = ["/healthz", "/readyz", grpc_health::PATH];
/// Whether this path never needs a token, on either listener.
pub(super) fn is_open(path: &str) -> bool {
    OPEN.contains(&path)
}

const METRICS: &str = "/metrics";

/// What a listener asks of its callers.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    token: Option<Renewed<Digests>>,
    /// On the listener with metrics: what they need. The token above serves as well.
    metrics: Option<Metrics>,
}

#[derive(Clone, Debug)]
enum Metrics {
    Open,
    Token(Renewed<Digests>),
}

/// SHA-256 of each token. Comparing digests takes a time that says nothing about the tokens, since nobody can choose how
/// far a digest agrees with one that they don't know.
struct Digests(Vec<[u8; 32]>);

/// What a caller presented.
enum Presented<'a> {
    Nothing,
    Token(&'a [u8]),
}

impl Guard {
    /// Of the data listener. Must be called inside a Tokio runtime, as [`Guard::admin`].
    ///
    /// # Errors
    /// When the tokens' file is of no use.
    pub fn data(token: Option<&Tokens>) -> Result<Self, FileError> {
        Ok(Self { token: token.map(|token| digests("token_file", token)).transpose()?, metrics: None })
    }

    /// Of the admin listener: metrics have a token of their own, or none.
    ///
    /// # Errors
    /// When a file of tokens is of no use.
    pub fn admin(token: Option<&Tokens>, metrics_token: Option<&Tokens>) -> Result<Self, FileError> {
        let token = token.map(|token| digests("admin.token_file", token)).transpose()?;
        let metrics = match metrics_token {
            None => Metrics::Open,
            Some(token) => Metrics::Token(digests("admin.metrics_token_file", token)?),
        };
        Ok(Self { token, metrics: Some(metrics) })
    }

    /// Whether every caller is admitted.
    pub(super) const fn asks_nothing(&self) -> bool {
        self.token.is_none() && !matches!(self.metrics, Some(Metrics::Token(_)))
    }

    fn admits(&self, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
        // The router compares paths as they stand too, so nothing else is answered by these.
        if is_open(path) {
            return Ok(());
        }
        // The page holds no data, and asks for the token.
        if self.metrics.is_some() && dashboard::has(path) {
            return Ok(());
        }
        let (token, also) = match &self.metrics {
            Some(Metrics::Open) if path == METRICS => return Ok(()),
            Some(Metrics::Token(metrics)) if path == METRICS => (Some(metrics), self.token.as_ref()),
            _ => (self.token.as_ref(), None),
        };
        let Some(token) = token else { return Ok(()) };
        match presented(headers) {
            Presented::Nothing => Err(Refusal::NoToken),
            Presented::Token(presented) => {
                let good = token.get().contains(presented) || also.is_some_and(|also| also.get().contains(presented));
                if good { Ok(()) } else { Err(Refusal::WrongToken) }
            }
        }
    }
}

/// Lets a request through, or answers 401.
pub(super) async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.admits(request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => mark::marked(refusal.into_response()),
    }
}

/// The token in `Authorization: Bearer …` (RFC 6750, section 2.1). Of several such headers none counts.
fn presented(headers: &HeaderMap) -> Presented<'_> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Presented::Nothing };
    match value.as_bytes().split_at_checked("bearer ".len()) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Presented::Token(token.trim_ascii()),
        _ => Presented::Nothing,
    }
}

fn digests(what: &'static str, tokens: &Tokens) -> Result<Renewed<Digests>, FileError> {
    let read = {
        let tokens = tokens.clone();
        move || tokens.read().map(|tokens| Digests::of(&tokens))
    };
    match tokens.file() {
        None => read().map(Renewed::fixed),
        Some(file) => Renewed::of_files(what, vec![file.to_owned()], read),
    }
}

impl Digests {
    fn of(tokens: &[Secret]) -> Self {
        Self(tokens.iter().map(|token| Sha256::digest(token.expose()).into()).collect())
    }

    fn contains(&self, presented: &[u8]) -> bool {
        let presented: [u8; 32] = Sha256::digest(presented).into();
        self.0.iter().fold(false, |found, digest| found | (*digest == presented))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn token(text: &str) -> Tokens {
        Tokens::Text(Secret::new(text))
    }

    fn status(guard: &Guard, path: &str, authorization: &[&str]) -> u16 {
        let mut headers = HeaderMap::new();
        for value in authorization {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        guard.admits(path, &headers).map_or_else(|refusal| refusal.into_response().status().as_u16(), |()| 200)
    }

    #[test]
    fn everything_but_health_needs_the_token() {
        let guard = Guard::data(Some(&token("hunter2"))).unwrap();
        for path in
            ["/v1/check", "/nowhere", "", "*", "/healthz/", "//healthz", "/healthz/../v1/check", "/metrics", "/"]
        {
            assert_eq!(status(&guard, path, &[]), 401, "{path}");
            assert_eq!(status(&guard, path, &["Bearer hunter2"]), 200, "{path}");
        }
        for path in OPEN {
            assert_eq!(status(&guard, path, &[]), 200);
        }
        for wrong in
            ["hunter2", "Bearer", "Bearer ", "Bearer hunter", "Bearer hunter22", "Basic hunter2", "Bearerhunter2"]
        {
            assert_eq!(status(&guard, "/v1/check", &[wrong]), 401, "{wrong}");
        }
        assert_eq!(status(&guard, "/v1/check", &["bearer  hunter2"]), 200);
        assert_eq!(status(&guard, "/v1/check", &["Bearer hunter2", "Bearer hunter2"]), 401);
        assert_eq!(status(&Guard::default(), "/v1/check", &[]), 200);
    }

    #[test]
    fn metrics_need_their_own_token_or_none() {
        let open = Guard::admin(Some(&token("all")), None).unwrap();
        assert_eq!(status(&open, "/metrics", &[]), 200);
        assert_eq!(status(&open, "/metrics/x", &[]), 401);
        for (path, expected) in [("/", 200), ("/dashboard/app.js", 200), ("/dashboard/", 401), ("/v1/overview", 401)] {
            assert_eq!(status(&open, path, &[]), expected, "{path}");
        }
        let guard = Guard::admin(Some(&token("all")), Some(&token("some"))).unwrap();
        assert_eq!(status(&guard, "/metrics", &[]), 401);
        assert_eq!(status(&guard, "/metrics", &["Bearer some"]), 200);
        assert_eq!(status(&guard, "/metrics", &["Bearer all"]), 200);
        assert_eq!(status(&guard, "/v1/policies", &["Bearer some"]), 401);
        let guard = Guard::admin(None, Some(&token("some"))).unwrap();
        assert_eq!((status(&guard, "/metrics", &[]), status(&guard, "/v1/policies", &[])), (401, 200));
    }
}
