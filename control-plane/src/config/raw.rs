//! The file as written: every field's kind is right, its value not yet looked at.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_path_to_error::{Path, Segment, Track};
use serde_saphyr::{Error, MessageFormatter as _, Options, Spanned, UserMessageFormatter};
use sluicegate_wire::Name;

use super::{error::Fault, hint::did_you_mean, rate_limit_service::RawRateLimitService};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    #[serde(default, deserialize_with = "present")]
    pub(super) listen: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) token: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) token_file: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) tls: Option<Spanned<RawServerTls>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) max_connections: Option<Spanned<u32>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) reuse_port: Option<Spanned<bool>>,
    #[serde(default)]
    pub(super) admin: RawAdmin,
    pub(super) store: RawStore,
    #[serde(default, deserialize_with = "present")]
    pub(super) drain: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) key_pepper: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) refunds: Option<bool>,
    #[serde(default, deserialize_with = "present")]
    pub(super) rate_limit_service: Option<RawRateLimitService>,
    pub(super) policies: Spanned<BTreeMap<Name, RawPolicy>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdmin {
    #[serde(default, deserialize_with = "present")]
    pub(super) listen: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) token: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) token_file: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) metrics_token: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) metrics_token_file: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) tls: Option<Spanned<RawServerTls>>,
}

/// What a listener shows to its callers, and what it asks of them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawServerTls {
    pub(super) cert_file: Spanned<String>,
    pub(super) key_file: Spanned<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) client_ca_file: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStore {
    pub(super) url: Spanned<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) timeout: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) prefix: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) username: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) password: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) password_file: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) sentinel: Option<Spanned<RawSentinel>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) tls: Option<Spanned<RawTls>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) connections: Option<Spanned<u32>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) max_in_flight: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSentinel {
    #[serde(default, deserialize_with = "present")]
    pub(super) username: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) password: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) password_file: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawTls {
    #[serde(default, deserialize_with = "present")]
    pub(super) ca_file: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) cert_file: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) key_file: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPolicy {
    pub(super) limits: Spanned<Vec<Spanned<RawLimit>>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) ban: Option<Spanned<RawBan>>,
    #[serde(default)]
    pub(super) overrides: bool,
}

/// A bucket or a quota: which of them shows in its fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimit {
    pub(super) name: Spanned<Name>,
    #[serde(default, deserialize_with = "present")]
    pub(super) capacity: Option<Spanned<u64>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) refill: Option<Spanned<u64>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) per: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) interval: Option<Spanned<bool>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) quota: Option<Spanned<u64>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) every: Option<Spanned<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) time_zone: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBan {
    pub(super) after: Spanned<u64>,
    pub(super) within: Spanned<String>,
    #[serde(rename = "for")]
    pub(super) length: Spanned<String>,
}

/// A field that may be left out, but not left empty: `token:` and nothing more is a mistake, not a choice.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(field: D) -> Result<Option<T>, D::Error> {
    T::deserialize(field).map(Some)
}

/// Reads YAML; the first fault in it ends the reading.
pub(super) fn parse(text: &str) -> Result<RawConfig, Fault> {
    let mut options = Options::default();
    options.strict_booleans = true;
    // A snippet would show the lines around a fault, and with them a password.
    options.with_snippet = false;
    let mut track = Track::new();
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |yaml| {
        RawConfig::deserialize(serde_path_to_error::Deserializer::new(yaml, &mut track))
    })
    .map_err(|error| fault(&error, &track.path()))
}

fn fault(error: &Error, path: &Path) -> Fault {
    let mut path = path_in_file(path);
    if let Error::SerdeMissingField { field, .. } = error {
        path = if path.is_empty() { (*field).to_owned() } else { format!("{path}.{field}") };
    }
    let location = error.location().unwrap_or(serde_saphyr::Location::UNKNOWN);
    Fault::new(location, &path, reason(error))
}

/// The path without the `value` that [`Spanned`] adds after each field that knows its place. A policy may have the
/// name `value`: that is the third segment, after `policies` and its own `value`.
fn path_in_file(path: &Path) -> String {
    let in_policies = matches!(path.iter().next(), Some(Segment::Map { key }) if key == "policies");
    let mut shown = String::new();
    for (depth, segment) in path.iter().enumerate() {
        match segment {
            Segment::Map { key } if key == "value" && !(in_policies && depth == 2) => {}
            Segment::Seq { index } => shown.push_str(&format!("[{index}]")),
            Segment::Map { key } if shown.is_empty() => shown.push_str(key),
            Segment::Map { key } => shown.push_str(&format!(".{key}")),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    shown
}

/// What is wrong and how to mend it, in the words of this file rather than those of a YAML library.
fn reason(error: &Error) -> String {
    match error {
        Error::Eof { .. } => "the file is empty; it needs at least store.url and policies".to_owned(),
        Error::SerdeUnknownField { field, expected, .. } => {
            let hint = did_you_mean(field, expected.iter().copied());
            format!("there is no such field here{hint}; there are: {}", expected.join(", "))
        }
        Error::SerdeMissingField { field, .. } => format!("is missing; add {}", example(field)),
        Error::Unexpected { expected: "mapping start", .. } => "must have fields of its own".to_owned(),
        Error::Unexpected { expected: "sequence start", .. } => "must be a list".to_owned(),
        Error::Unexpected { expected: "string scalar", .. } => "must be a text".to_owned(),
        Error::NullIntoString { .. } => "must not be empty; give it a value or leave it out".to_owned(),
        Error::InvalidScalar { ty: "u64", .. } => "must be a whole number from 1 to 9007199254740992".to_owned(),
        Error::InvalidScalar { ty: "u32", .. } => "must be a whole number of at least 1".to_owned(),
        Error::InvalidBooleanStrict { .. } => "must be true or false".to_owned(),
        Error::DuplicateMappingKey { key, .. } => {
            format!("{} is there twice; keep one", key.as_deref().unwrap_or("a field"))
        }
        Error::Message { msg, .. } => msg.clone(),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

fn example(field: &str) -> &'static str {
    match field {
        "store" => "store: { url: redis://127.0.0.1:6379 }",
        "url" => "url: redis://127.0.0.1:6379",
        "policies" => "policies: { api: { limits: [ { name: burst, capacity: 10, refill: 10, per: 1s } ] } }",
        "limits" => "limits: [ { name: burst, capacity: 10, refill: 10, per: 1s } ]",
        "name" => "a name such as name: burst",
        "after" => "the denials it takes, such as after: 20",
        "cert_file" => "the certificate, such as cert_file: /etc/sluicegate/tls.crt",
        "key_file" => "its private key, such as key_file: /etc/sluicegate/tls.key",
        "domains" => "domains: { edge: [ { match: [ remote_address ], policy: api } ] }",
        "match" => "the entries of the descriptors it is for, such as match: [ remote_address ]",
        "entry" => "entry: and the key of an entry of match",
        "within" => "the time in which they count, such as within: 10m",
        "for" => "how long it lasts, such as for: 1h",
        _ => "it",
    }
}
