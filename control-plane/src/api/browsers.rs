//! Keeps pages of other sites from using an operator's browser to ask here.
//!
//! A token that a page must know stops them all; a listener without one is open to whatever runs on this machine, and a
//! browser runs what the whole world wrote. Two ways lead here, and each is closed:
//!
//! - A page elsewhere sends a request across sites. Browsers say so in `Sec-Fetch-Site`, and older ones in `Origin`.
//! - A page's own name is made to lead to 127.0.0.1 (DNS rebinding), so that nothing is across sites. Then `Host` has
//!   that name, so a listener without a token answers only to names that nobody else can own.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Uri,
        header::{HOST, ORIGIN, X_CONTENT_TYPE_OPTIONS},
        uri::Authority,
    },
    middleware::Next,
    response::{IntoResponse as _, Response},
};

use super::{dashboard, guard, mark, respond::Refusal};

/// By which names a listener may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hosts {
    /// By any: a token is needed, or no browser can connect.
    Any,
    /// As `localhost`, a name below it, or an IP address.
    Local,
}

/// Lets a request through, or answers 403.
pub(super) async fn admit(State(hosts): State<Arc<Hosts>>, request: Request, next: Next) -> Response {
    let mut response = match hosts.admit(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => mark::marked(refusal.into_response()),
    };
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Lets a request through that no browser made for the page of another site, or answers 403.
pub(super) async fn refuse_pages(request: Request, next: Next) -> Response {
    match Hosts::Any.admit(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => mark::marked(refusal.into_response()),
    }
}

impl Hosts {
    fn admit(self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        // Health checks use any name, and say nothing that could be of use.
        if guard::is_open(uri.path()) {
            return Ok(());
        }
        let host = match host(uri, headers) {
            Asked::By(host) if self == Self::Local && !is_local(host.host()) => return Err(Refusal::ForeignHost),
            // A browser may look up what is no name to this library.
            Asked::Unreadable if self == Self::Local => return Err(Refusal::ForeignHost),
            Asked::By(host) => Some(host),
            Asked::Unreadable | Asked::Nobody => None,
        };
        // A link from elsewhere leads to the page.
        if !dashboard::has(uri.path()) && is_cross_site(host.as_ref(), headers) {
            return Err(Refusal::CrossSite);
        }
        Ok(())
    }
}

/// By which name a listener is asked.
enum Asked {
    By(Authority),
    /// There is one, or there are several, and it can't be said which it is.
    Unreadable,
    /// Nobody but a browser matters here, and browsers always say.
    Nobody,
}

/// HTTP/2 has it in the URI.
fn host(uri: &Uri, headers: &HeaderMap) -> Asked {
    if let Some(authority) = uri.authority() {
        return Asked::By(authority.clone());
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => Asked::Nobody,
        (Some(host), None) => Authority::try_from(host.as_bytes()).map_or(Asked::Unreadable, Asked::By),
        (Some(_), Some(_)) => Asked::Unreadable,
    }
}

/// A name or address that a page of somebody else's can't have: `localhost` never leaves the machine, and an address is
/// not looked up.
fn is_local(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    address.parse::<IpAddr>().is_ok() || host == "localhost" || host.ends_with(".localhost")
}

/// `same-site` is not enough: another port of this machine is of the same site.
fn is_cross_site(host: Option<&Authority>, headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return !matches!(site.as_bytes(), b"same-origin" | b"none");
    }
    let Some(origin) = headers.get(ORIGIN) else { return false };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://")).map(|(_, authority)| authority);
    // `null`, and whatever else names no host, is somewhere else.
    origin.is_none_or(|origin| host.is_none_or(|host| !host.as_str().eq_ignore_ascii_case(origin)))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;

    use super::*;

    fn status(hosts: Hosts, path: &str, headers: &[(&str, &str)]) -> u16 {
        let header =
            |(name, value): &(&str, &str)| (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap());
        let headers = headers.iter().map(header).collect();
        let admitted = hosts.admit(&path.parse().unwrap(), &headers);
        admitted.map_or_else(|refusal| refusal.into_response().status().as_u16(), |()| 200)
    }

    #[test]
    fn requests_across_sites_are_refused() {
        let check = |headers: &[(&str, &str)], expected| {
            for hosts in [Hosts::Any, Hosts::Local] {
                let headers = [&[("host", "127.0.0.1:8081")], headers].concat();
                assert_eq!(status(hosts, "/v1/reset", &headers), expected, "{headers:?}");
                assert_eq!(status(hosts, "/v1/events", &headers), expected, "{headers:?}");
                assert_eq!(status(hosts, "/", &headers), 200, "{headers:?}");
                assert_eq!(status(hosts, "/healthz", &headers), 200, "{headers:?}");
            }
        };
        check(&[], 200);
        check(&[("sec-fetch-site", "same-origin")], 200);
        check(&[("sec-fetch-site", "none")], 200);
        check(&[("sec-fetch-site", "same-site")], 403);
        check(&[("sec-fetch-site", "cross-site")], 403);
        check(&[("sec-fetch-site", "cross-site"), ("origin", "http://127.0.0.1:8081")], 403);
        check(&[("origin", "http://127.0.0.1:8081")], 200);
        check(&[("origin", "http://127.0.0.1:3000")], 403);
        check(&[("origin", "https://evil.example")], 403);
        check(&[("origin", "null")], 403);
    }

    #[test]
    fn without_a_token_only_local_names_are_answered() {
        for local in
            ["127.0.0.1:8081", "127.0.0.1", "[::1]:8081", "localhost", "LOCALHOST:8081", "a.localhost:1", "localhost."]
        {
            assert_eq!(status(Hosts::Local, "/v1/policies", &[("host", local)]), 200, "{local}");
        }
        for foreign in ["evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example", "notlocalhost"] {
            assert_eq!(status(Hosts::Local, "/v1/policies", &[("host", foreign)]), 403, "{foreign}");
            assert_eq!(status(Hosts::Local, "/", &[("host", foreign)]), 403, "{foreign}");
            assert_eq!(status(Hosts::Local, "/readyz", &[("host", foreign)]), 200, "{foreign}");
            assert_eq!(status(Hosts::Any, "/v1/policies", &[("host", foreign)]), 200, "{foreign}");
        }
        for odd in
            ["{a}.evil.example:8081", "a`.evil.example", "a\".evil", "a^b.evil", "evil%2eexample", "[evil.example", ""]
        {
            assert_eq!(status(Hosts::Local, "/v1/policies", &[("host", odd)]), 403, "{odd}");
            assert_eq!(status(Hosts::Any, "/v1/policies", &[("host", odd)]), 200, "{odd}");
        }
        let mut two = HeaderMap::new();
        two.append(HOST, HeaderValue::from_static("localhost"));
        two.append(HOST, HeaderValue::from_static("evil.example"));
        assert!(Hosts::Local.admit(&Uri::from_static("/v1/policies"), &two).is_err());
        assert_eq!(status(Hosts::Local, "http://evil.example/v1/policies", &[]), 403);
        assert_eq!(status(Hosts::Local, "/v1/policies", &[]), 200);
    }
}
