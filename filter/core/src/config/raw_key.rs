//! A part of a key as written.

use super::{
    ConfigError,
    forms::{OneOrMany, Whole},
    node::{Fields, Node, Read, object, quoted, words},
};

/// A source, and what becomes of it.
pub(super) struct RawKeyPart<'a> {
    pub(super) source: RawSource<'a>,
    pub(super) secret: bool,
    pub(super) missing: RawMissing<'a>,
}

/// The sources that are a word.
pub(super) const WORDS: &[&str] = &["client_ip", "method", "host"];
/// The fields of which an object has one.
pub(super) const FIELDS: &[&str] = &[
    "header",
    "cookie",
    "query",
    "path_segment",
    "path_variable",
    "jwt",
    "mtls",
    "route_metadata",
    "property",
    "constant",
    "client_ip",
];
/// What `missing` can be besides an object.
pub(super) const MISSING: &[&str] = &["shared", "skip", "deny"];

/// Where a value comes from: a word, or an object with one field.
pub(super) enum RawSource<'a> {
    ClientIp(RawClientIp),
    Method,
    Host,
    Header(&'a str),
    Cookie(&'a str),
    Query(&'a str),
    PathSegment(Whole<0, 255>),
    PathVariable(&'a str),
    Jwt(RawJwt<'a>),
    Mtls(RawMtls),
    RouteMetadata(Vec<&'a str>),
    Property(RawProperty<'a>),
    Constant(&'a str),
}

impl<'a> RawSource<'a> {
    fn word(node: Node<'_, 'a>) -> Result<Option<Self>, ConfigError> {
        match node.text() {
            Some("client_ip") => Ok(Some(Self::ClientIp(RawClientIp::default()))),
            Some("method") => Ok(Some(Self::Method)),
            Some("host") => Ok(Some(Self::Host)),
            None if node.value.is_object() => Ok(None),
            _ => Err(node.wrong(format!("use one of {}, or an object with one of {}", quoted(WORDS), quoted(FIELDS)))),
        }
    }

    /// Takes the one field, of which `wrong` says that it must be one.
    fn take(fields: &Fields<'_, 'a>, wrong: ConfigError) -> Result<Self, ConfigError> {
        let mut given = FIELDS.iter().filter(|name| fields.has(name));
        let (Some(name), None) = (given.next(), given.next()) else { return Err(wrong) };
        Ok(match *name {
            "header" => Self::Header(fields.get(name)?),
            "cookie" => Self::Cookie(fields.get(name)?),
            "query" => Self::Query(fields.get(name)?),
            "path_segment" => Self::PathSegment(fields.get(name)?),
            "path_variable" => Self::PathVariable(fields.get(name)?),
            "jwt" => Self::Jwt(fields.get(name)?),
            "mtls" => Self::Mtls(fields.get(name)?),
            "route_metadata" => Self::RouteMetadata(fields.get(name)?),
            "property" => Self::Property(fields.get(name)?),
            "constant" => Self::Constant(fields.get(name)?),
            _ => Self::ClientIp(fields.get(name)?),
        })
    }
}

fn one_field(node: Node<'_, '_>) -> ConfigError {
    node.wrong(format!("give one of {}", quoted(FIELDS)))
}

impl<'a> Read<'a> for RawSource<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        if let Some(source) = Self::word(node)? {
            return Ok(source);
        }
        let wrong = one_field(node);
        Self::take(&node.fields(FIELDS)?, wrong)
    }
}

impl<'a> Read<'a> for RawKeyPart<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        if let Some(source) = RawSource::word(node)? {
            return Ok(Self { source, secret: false, missing: RawMissing::Shared });
        }
        let wrong = one_field(node);
        let fields = node.fields(&[FIELDS, &["secret", "missing"]].concat())?;
        Ok(Self {
            source: RawSource::take(&fields, wrong)?,
            secret: fields.get::<Option<bool>>("secret")?.unwrap_or(false),
            missing: fields.get::<Option<RawMissing<'_>>>("missing")?.unwrap_or(RawMissing::Shared),
        })
    }
}

/// The client's address.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawClientIp {
    /// The leading bits of an IPv6 address that make one client. 64 without.
    pub(super) ipv6_prefix: Option<Whole<1, 128>>,
}
object!(RawClientIp { ipv6_prefix });

/// A claim of a token that the proxy's `jwt_authn` has verified.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawJwt<'a> {
    /// The claim's name; a list leads to a claim within claims.
    pub(super) claim: OneOrMany<&'a str>,
    /// Where `jwt_authn` puts the payload: its `payload_in_metadata`. `payload` without.
    pub(super) provider: Option<&'a str>,
}
object!(RawJwt<'a> { claim, provider });

/// What to take of the client's certificate.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "snake_case"))]
pub(super) enum RawMtls {
    UriSan,
    DnsSan,
    Subject,
    Sha256,
}
words!(RawMtls { "uri_san" => UriSan, "dns_san" => DnsSan, "subject" => Subject, "sha256" => Sha256 });

/// The path of a property: a list, or a text with dots between.
pub(super) struct RawProperty<'a>(pub(super) Vec<&'a str>);

impl<'a> Read<'a> for RawProperty<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        match node.text() {
            Some(text) => Ok(Self(text.split('.').collect())),
            None => Vec::read(node).map(Self),
        }
    }
}

/// What becomes of a request without the value.
pub(super) enum RawMissing<'a> {
    Shared,
    Skip,
    Deny,
    Value(&'a str),
}

/// The form of `missing` that is an object.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawMissingValue<'a> {
    /// As if this had been sent.
    value: &'a str,
}
object!(RawMissingValue<'a> { value });

impl<'a> Read<'a> for RawMissing<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        match node.text() {
            Some("shared") => Ok(Self::Shared),
            Some("skip") => Ok(Self::Skip),
            Some("deny") => Ok(Self::Deny),
            None if node.value.is_object() => RawMissingValue::read(node).map(|form| Self::Value(form.value)),
            _ => Err(node.wrong(format!("use one of {} or {{value: …}}", quoted(MISSING)))),
        }
    }
}
