//! The configuration as written: which fields there are, and the form of each.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};
use sluicegate_wire::{Cost, Name};

use super::{
    ConfigError, protobuf,
    raw_failure::RawOnFailure,
    raw_runtime::{RawBreaker, RawCharge, RawDenyCache, RawMetrics, RawReject},
};
use crate::Timeout;

/// Reads the object, from JSON or else from a Struct, whose first bytes (a line feed, a length, a line feed) are no
/// configuration in JSON. Unknown fields are errors.
pub(super) fn read(bytes: &[u8]) -> Result<RawConfig, ConfigError> {
    if bytes.trim_ascii().is_empty() {
        return Err(ConfigError::Empty);
    }
    read_json(bytes).or_else(|error| match protobuf::decode_struct(bytes) {
        // Through text, so that the filter carries one deserializer and not two.
        Some(object) => read_json(object.to_string().as_bytes()),
        None => Err(error),
    })
}

fn read_json(json: &[u8]) -> Result<RawConfig, ConfigError> {
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let Object(raw) = serde_path_to_error::deserialize(&mut deserializer)?;
    deserializer.end().map_err(|error| ConfigError::Syntax(error.to_string()))?;
    Ok(raw)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConfig {
    pub(super) service: Object<RawService>,
    #[serde(default)]
    pub(super) key_pepper: SecretText,
    pub(super) rules: Vec<Object<RawRule>>,
    #[serde(default)]
    pub(super) shadow: bool,
    #[serde(default)]
    pub(super) breaker: Object<RawBreaker>,
    #[serde(default)]
    pub(super) deny_cache: Object<RawDenyCache>,
    #[serde(default)]
    pub(super) reject: Object<RawReject>,
    #[serde(default, deserialize_with = "present")]
    pub(super) headers: Option<Vec<String>>,
    #[serde(default)]
    pub(super) metrics: Object<RawMetrics>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawService {
    pub(super) cluster: String,
    #[serde(default = "default_authority")]
    pub(super) authority: String,
    #[serde(default)]
    pub(super) timeout: Timeout,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, SecretText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawRule {
    pub(super) name: Name,
    #[serde(default, rename = "match")]
    pub(super) matcher: Object<RawMatch>,
    pub(super) limits: Vec<Object<RawLimit>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) timeout: Option<Timeout>,
    #[serde(default)]
    pub(super) on_failure: RawOnFailure,
    #[serde(default)]
    pub(super) shadow: bool,
    #[serde(default, deserialize_with = "present")]
    pub(super) reject: Option<Object<RawReject>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) charge: Option<Object<RawCharge>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMatch {
    #[serde(default, deserialize_with = "present")]
    pub(super) methods: Option<Vec<String>>,
    #[serde(default, deserialize_with = "present")]
    pub(super) path: Option<Object<RawPath>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPath {
    #[serde(default, deserialize_with = "present")]
    pub(super) exact: Option<String>,
    #[serde(default, deserialize_with = "present")]
    pub(super) prefix: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLimit {
    pub(super) policy: Name,
    pub(super) key: Vec<RawKeyPart>,
    #[serde(default)]
    pub(super) cost: Cost,
    #[serde(default)]
    pub(super) shadow: bool,
}

/// `client_ip`, or an object.
pub(super) enum RawKeyPart {
    ClientIp,
    Header(RawHeaderPart),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHeaderPart {
    pub(super) header: String,
    #[serde(default)]
    pub(super) secret: bool,
    #[serde(default, rename = "missing")]
    _missing: RawMissing,
}

/// What a missing part means; `shared` is the one way there is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawMissing {
    #[default]
    Shared,
}

fn default_authority() -> String {
    "sluicegate".to_owned()
}

/// A field that may be left out, but not be `null`: an empty value in YAML is an oversight, not a default.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// An object and nothing else. What serde derives also takes a list of values in the order of the fields, and `match: []`
/// would match everything.
#[derive(Default)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A type that has a short form, one word, and a long form, an object.
pub(super) trait WordOrObject<'de>: Sized {
    const EXPECTING: &'static str;

    fn word(word: &str) -> Option<Self>;
    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error>;
}

impl<'de> WordOrObject<'de> for RawKeyPart {
    const EXPECTING: &'static str = "client_ip or an object with header, secret and missing";

    fn word(word: &str) -> Option<Self> {
        (word == "client_ip").then_some(Self::ClientIp)
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        RawHeaderPart::deserialize(MapAccessDeserializer::new(map)).map(Self::Header)
    }
}

pub(super) struct WordOrObjectVisitor<T>(PhantomData<T>);

impl<T> WordOrObjectVisitor<T> {
    pub(super) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<'de, T: WordOrObject<'de>> de::Visitor<'de> for WordOrObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(T::EXPECTING)
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<T, E> {
        T::word(word).ok_or_else(|| E::invalid_value(de::Unexpected::Str(word), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::object(map)
    }
}

impl<'de> Deserialize<'de> for RawKeyPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObjectVisitor(PhantomData))
    }
}

/// Text that may be a secret: without quotes it may be read as a number, and serde's error would show it.
#[derive(Default)]
pub(super) struct SecretText(pub(super) String);

impl<'de> Deserialize<'de> for SecretText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        match value {
            serde_json::Value::String(text) => Ok(Self(text)),
            _ => Err(de::Error::custom("must be a text: put it in quotes")),
        }
    }
}
