//! Keys, and where values come from, from as written to as applied.

use super::{
    ConfigError,
    check_match::header_name,
    place::Place,
    raw_key::{RawJwt, RawKeyPart, RawMissing, RawMtls, RawSource},
};
use crate::{Key, KeyPart, Matcher, Missing, PathMatch, Source};

/// The leading bits of an IPv6 address that one client usually has to itself.
const IPV6_PREFIX: u8 = 64;
/// Where `jwt_authn` puts a payload when Istio configures it.
const JWT_PAYLOAD: &str = "payload";
/// The deepest path of a property; bounds the size of the question to the proxy.
const MAX_DEPTH: usize = 16;

pub(super) fn key(place: &Place<'_>, raw: Vec<RawKeyPart<'_>>, matcher: &Matcher) -> Result<Key, ConfigError> {
    let mut parts = Vec::new();
    for (index, raw) in raw.into_iter().enumerate() {
        parts.push(key_part(&place.item(index), raw, matcher)?);
    }
    Key::new(parts).map_err(|error| place.wrong(error.to_string()))
}

fn key_part(place: &Place<'_>, raw: RawKeyPart<'_>, matcher: &Matcher) -> Result<KeyPart, ConfigError> {
    let missing = match raw.missing {
        RawMissing::Shared => Missing::Shared,
        RawMissing::Skip => Missing::Skip,
        RawMissing::Deny => Missing::Deny,
        RawMissing::Value(value) => Missing::Value(value.to_owned()),
    };
    Ok(KeyPart { source: source(place, raw.source, matcher)?, secret: raw.secret, missing })
}

/// A source; what it says of the path is about the rule's own condition on it.
pub(super) fn source(place: &Place<'_>, raw: RawSource<'_>, matcher: &Matcher) -> Result<Source, ConfigError> {
    let field = |name: &str, problem: String| place.field(name).wrong(problem);
    let path_match = matcher.path.as_ref();
    let ignore_case = path_match.is_some_and(|path| path.options().ignore_case);
    Ok(match raw {
        RawSource::ClientIp(raw) => {
            let prefix = raw.ipv6_prefix.and_then(|prefix| u8::try_from(prefix.0).ok());
            Source::ClientIp { ipv6_prefix: prefix.unwrap_or(IPV6_PREFIX) }
        }
        RawSource::Method => Source::Method,
        RawSource::Host => Source::Host,
        RawSource::Header(name) => Source::Header(header_name(name).map_err(|problem| field("header", problem))?),
        RawSource::Cookie(name) => {
            if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && !b"=;,\"".contains(&byte)) {
                return Err(field("cookie", "the name of a cookie, without blanks and = ; , \"".to_owned()));
            }
            Source::Cookie(name.to_owned())
        }
        RawSource::Query(name) => Source::Query(name.to_owned()),
        RawSource::PathSegment(index) => {
            Source::PathSegment { index: usize::try_from(index.0).unwrap_or(usize::MAX), ignore_case }
        }
        RawSource::PathVariable(name) => {
            let index = variable(path_match, name).map_err(|problem| field("path_variable", problem))?;
            Source::PathSegment { index, ignore_case }
        }
        RawSource::Jwt(raw) => Source::Property(claim(place, &raw)?),
        RawSource::Mtls(raw) => {
            let name = match raw {
                RawMtls::UriSan => "uri_san_peer_certificate",
                RawMtls::DnsSan => "dns_san_peer_certificate",
                RawMtls::Subject => "subject_peer_certificate",
                RawMtls::Sha256 => "sha256_peer_certificate_digest",
            };
            Source::Property(vec!["connection".to_owned(), name.to_owned()])
        }
        RawSource::RouteMetadata(names) => {
            if names.len() < 2 {
                let problem = "list the namespace and the name, such as [sluicegate, tenant]";
                return Err(field("route_metadata", problem.to_owned()));
            }
            let names = [&["xds", "route_metadata", "filter_metadata"], names.as_slice()].concat();
            Source::Property(property(&names).map_err(|problem| field("route_metadata", problem))?)
        }
        RawSource::Property(names) => {
            Source::Property(property(&names.0).map_err(|problem| field("property", problem))?)
        }
        RawSource::Constant(text) => Source::Constant(text.to_owned()),
    })
}

fn variable(path: Option<&PathMatch>, name: &str) -> Result<usize, String> {
    let template = path.and_then(PathMatch::template);
    match template.map(|template| (template.index_of(name), template.names())) {
        Some((Some(index), _)) => Ok(index),
        Some((None, names)) if !names.is_empty() => Err(format!("the rule's template has only {}", names.join(", "))),
        _ => Err(format!("the rule matches no template with {{{name}}}: give it one, or use path_segment")),
    }
}

fn claim(place: &Place<'_>, raw: &RawJwt<'_>) -> Result<Vec<String>, ConfigError> {
    let provider = raw.provider.unwrap_or(JWT_PAYLOAD);
    let payload = ["metadata", "filter_metadata", "envoy.filters.http.jwt_authn", provider];
    let names = [payload.as_slice(), &raw.claim.0].concat();
    property(&names).map_err(|problem| place.field("jwt").wrong(problem))
}

/// A path of names as the proxy takes it: joined with zero bytes.
fn property(names: &[&str]) -> Result<Vec<String>, String> {
    let usable = |name: &&str| !name.is_empty() && !name.contains('\0');
    if names.is_empty() || names.len() > MAX_DEPTH || !names.iter().all(usable) {
        return Err(format!("1 to {MAX_DEPTH} names, none of them empty"));
    }
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}
