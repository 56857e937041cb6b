//! Where the values of keys, policies and costs come from.

use crate::{HeaderName, address, cookie, property, query, view::View};

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The client's address, without port.
    ClientIp {
        /// The leading bits of an IPv6 address that make one client, 1 to 128.
        ipv6_prefix: u8,
    },
    /// The method.
    Method,
    /// The host, in its one form.
    Host,
    /// A header. Of `authorization` the scheme is in lower case, since `BEARER x` is no other credential.
    Header(HeaderName),
    /// A cookie, decoded.
    Cookie(String),
    /// A parameter of the query, decoded.
    Query(String),
    /// A segment of the normalised path, decoded.
    PathSegment {
        /// Counted from 0.
        index: usize,
        /// Whether to take it in lower case.
        ignore_case: bool,
    },
    /// A property of the proxy.
    Property(Vec<String>),
    /// Always this.
    Constant(String),
}

/// What a source has for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing.
    Absent,
    /// This. A value may be empty.
    One(Vec<u8>),
    /// Several values, of which upstreams take now the first, now the last.
    Several,
}

impl Source {
    pub(crate) fn find(&self, view: &View<'_>) -> Found {
        match self {
            Self::ClientIp { ipv6_prefix } => {
                view.client().map(|ip| address::key(ip, *ipv6_prefix).into_bytes()).map_or(Found::Absent, Found::One)
            }
            Self::Method => Found::One(view.method().to_vec()),
            Self::Host => Found::One(view.host().as_bytes().to_vec()),
            Self::Header(name) => {
                let credentials = matches!(name.as_str(), "authorization" | "proxy-authorization");
                let value = |value: &[u8]| if credentials { scheme_in_lower_case(value) } else { value.to_vec() };
                single(view.request().headers().all(name.as_str()).map(value))
            }
            Self::Cookie(name) => single(cookie::all(view.request().headers(), name)),
            Self::Query(name) => single(query::all(view.full_path(), name)),
            Self::PathSegment { index, ignore_case } => single(view.path(*ignore_case).segment(*index)),
            Self::Property(path) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                single(view.request().property(&names).map(|value| property::text(path, value)))
            }
            Self::Constant(text) => Found::One(text.clone().into_bytes()),
        }
    }
}

fn single(values: impl IntoIterator<Item = Vec<u8>>) -> Found {
    let mut values = values.into_iter();
    match (values.next(), values.next()) {
        (None, _) => Found::Absent,
        (Some(value), None) => Found::One(value),
        (Some(_), Some(_)) => Found::Several,
    }
}

/// `Bearer  x` as `bearer x` (RFC 9110 section 11.1: the scheme's case doesn't matter, one blank or more follow it).
fn scheme_in_lower_case(credentials: &[u8]) -> Vec<u8> {
    match credentials.iter().position(|byte| *byte == b' ').and_then(|at| credentials.split_at_checked(at)) {
        Some((scheme, rest)) => [&scheme.to_ascii_lowercase(), b" ".as_slice(), rest.trim_ascii()].concat(),
        None => credentials.to_vec(),
    }
}
