//! The file as written: every field's kind is right, its value not yet looked at.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_path_to_error::{Path, Segment, Track};
use serde_saphyr::{Error, MessageFormatter as _, Options, UserMessageFormatter};
use sluicegate_wire::Name;

#[cfg(test)]
use super::schema;
use super::{error::Fault, hint::did_you_mean, rate_limit_service::RawRateLimitService, spanned::Spanned};

/// The configuration of the Sluicegate service.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    /// Where checks are answered: IP:port or unix:/path. 127.0.0.1:8080 without.
    #[serde(default, deserialize_with = "present")]
    pub(super) listen: Option<Spanned<String>>,
    /// What callers of the data plane must present. With token_file or without both, nothing is asked for.
    #[serde(default, deserialize_with = "present")]
    pub(super) token: Option<Spanned<String>>,
    /// The absolute path of a file whose lines are such tokens, read anew when it changes.
    #[serde(default, deserialize_with = "present")]
    pub(super) token_file: Option<Spanned<String>>,
    /// TLS on the data plane; without, it is plain.
    #[serde(default, deserialize_with = "present")]
    pub(super) tls: Option<Spanned<RawServerTls>>,
    /// Connections to the data plane at once. 10000 without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(super) max_connections: Option<Spanned<u32>>,
    /// Whether several processes may listen on the same port. False without.
    #[serde(default, deserialize_with = "present")]
    pub(super) reuse_port: Option<Spanned<bool>>,
    /// The listener for everything else.
    #[serde(default)]
    pub(super) admin: RawAdmin,
    /// Where buckets are kept.
    pub(super) store: RawStore,
    /// How long requests are still answered after SIGTERM. 5s without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<schema::Duration>"))]
    pub(super) drain: Option<Spanned<String>>,
    /// Goes into the digests of secrets: the same here and in the filter.
    #[serde(default, deserialize_with = "present")]
    pub(super) key_pepper: Option<Spanned<String>>,
    /// Whether callers may give back what they took. Without, when the listener is local or asks for a token.
    #[serde(default, deserialize_with = "present")]
    pub(super) refunds: Option<bool>,
    /// What the descriptors of Envoy's own rate limit filter mean. Read anew without a restart.
    #[serde(default, deserialize_with = "present")]
    pub(super) rate_limit_service: Option<RawRateLimitService>,
    /// What is limited, by name. Read anew without a restart.
    #[cfg_attr(test, schemars(with = "BTreeMap<schema::Name, RawPolicy>", extend("minProperties" = 1)))]
    pub(super) policies: Spanned<BTreeMap<Name, RawPolicy>>,
}

/// The listener for everything but checks.
#[derive(Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawAdmin {
    /// IP:port or unix:/path. 127.0.0.1:8081 without.
    #[serde(default, deserialize_with = "present")]
    pub(super) listen: Option<Spanned<String>>,
    /// What callers must present; this or token_file is required where other machines can reach the address.
    #[serde(default, deserialize_with = "present")]
    pub(super) token: Option<Spanned<String>>,
    /// The absolute path of a file whose lines are such tokens, read anew when it changes.
    #[serde(default, deserialize_with = "present")]
    pub(super) token_file: Option<Spanned<String>>,
    /// What callers of /metrics must present. Nothing without.
    #[serde(default, deserialize_with = "present")]
    pub(super) metrics_token: Option<Spanned<String>>,
    /// The absolute path of a file whose lines are such tokens, read anew when it changes.
    #[serde(default, deserialize_with = "present")]
    pub(super) metrics_token_file: Option<Spanned<String>>,
    /// TLS on this listener; without, it is plain.
    #[serde(default, deserialize_with = "present")]
    pub(super) tls: Option<Spanned<RawServerTls>>,
}

/// What a listener shows to its callers, and what it asks of them.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawServerTls {
    /// The absolute path of the certificate and those between it and an authority, in PEM.
    pub(super) cert_file: Spanned<String>,
    /// The absolute path of its private key, in PEM.
    pub(super) key_file: Spanned<String>,
    /// Callers must show a certificate of one of the authorities in this file. Without, none is asked for.
    #[serde(default, deserialize_with = "present")]
    pub(super) client_ca_file: Option<Spanned<String>>,
}

/// Where buckets are kept.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawStore {
    /// redis://, rediss://, redis+sentinel://, redis+cluster:// (with rediss for TLS), unix:///path or memory://.
    pub(super) url: Spanned<String>,
    /// The longest that a decision waits for the store. 20ms without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<schema::Duration>"))]
    pub(super) timeout: Option<Spanned<String>>,
    /// What every key begins with. sg without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub(super) prefix: Option<Spanned<String>>,
    /// The user; without, Redis's user default.
    #[serde(default, deserialize_with = "present")]
    pub(super) username: Option<Spanned<String>>,
    /// The password.
    #[serde(default, deserialize_with = "present")]
    pub(super) password: Option<Spanned<String>>,
    /// The absolute path of a file whose first line is the password, read anew when it changes.
    #[serde(default, deserialize_with = "present")]
    pub(super) password_file: Option<Spanned<String>>,
    /// The login of the sentinels themselves.
    #[serde(default, deserialize_with = "present")]
    pub(super) sentinel: Option<Spanned<RawSentinel>>,
    /// What TLS needs, where the URL asks for it.
    #[serde(default, deserialize_with = "present")]
    pub(super) tls: Option<Spanned<RawTls>>,
    /// Connections to each server. 2 without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(range(min = 1, max = 64)))]
    pub(super) connections: Option<Spanned<u32>>,
    /// Calls under way at once; more are answered with 503. 10000 without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(range(min = 1, max = 1_000_000)))]
    pub(super) max_in_flight: Option<Spanned<u32>>,
}

/// The login of the sentinels themselves.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawSentinel {
    /// The user; without, the user default.
    #[serde(default, deserialize_with = "present")]
    pub(super) username: Option<Spanned<String>>,
    /// The password.
    #[serde(default, deserialize_with = "present")]
    pub(super) password: Option<Spanned<String>>,
    /// The absolute path of a file whose first line is the password.
    #[serde(default, deserialize_with = "present")]
    pub(super) password_file: Option<Spanned<String>>,
}

/// How servers and the service show who they are.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawTls {
    /// The absolute path of the authorities to trust, in PEM. Without, those that the system trusts.
    #[serde(default, deserialize_with = "present")]
    pub(super) ca_file: Option<Spanned<String>>,
    /// The absolute path of the certificate to show, in PEM.
    #[serde(default, deserialize_with = "present")]
    pub(super) cert_file: Option<Spanned<String>>,
    /// The absolute path of its private key, in PEM.
    #[serde(default, deserialize_with = "present")]
    pub(super) key_file: Option<Spanned<String>>,
}

/// Limits that are taken from together or not at all.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawPolicy {
    /// At least one.
    #[cfg_attr(test, schemars(length(min = 1, max = 16)))]
    pub(super) limits: Spanned<Vec<Spanned<RawLimit>>>,
    /// Denies a subject for a time after many denials.
    #[serde(default, deserialize_with = "present")]
    pub(super) ban: Option<Spanned<RawBan>>,
    /// Whether subjects may have numbers of their own. False without.
    #[serde(default)]
    pub(super) overrides: bool,
}

/// A bucket or a quota: which of them shows in its fields.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimit {
    /// The limit's name, unique in the policy.
    #[cfg_attr(test, schemars(with = "schema::Name"))]
    pub(super) name: Spanned<Name>,
    /// Of a bucket: the most tokens that it holds.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(super) capacity: Option<Spanned<u64>>,
    /// Of a bucket: the tokens that it gains in each `per`.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(super) refill: Option<Spanned<u64>>,
    /// Of a bucket: the period of the refill.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<schema::Duration>"))]
    pub(super) per: Option<Spanned<String>>,
    /// Of a bucket: refill all at once at the end of each period, rather than continuously. False without.
    #[serde(default, deserialize_with = "present")]
    pub(super) interval: Option<Spanned<bool>>,
    /// Of a quota: the tokens of each window.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(super) quota: Option<Spanned<u64>>,
    /// Of a quota: the length of its windows.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<schema::Every>"))]
    pub(super) every: Option<Spanned<String>>,
    /// Of a quota: the IANA name of the time zone. UTC without.
    #[serde(default, deserialize_with = "present")]
    pub(super) time_zone: Option<Spanned<String>>,
}

/// So many denials within a time, and the subject is denied for a time.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawBan {
    /// The denials that it takes.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub(super) after: Spanned<u64>,
    /// The time in which they count.
    #[cfg_attr(test, schemars(with = "schema::Duration"))]
    pub(super) within: Spanned<String>,
    /// How long it lasts.
    #[serde(rename = "for")]
    #[cfg_attr(test, schemars(with = "schema::Duration"))]
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
