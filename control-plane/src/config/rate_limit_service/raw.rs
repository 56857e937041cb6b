//! `rate_limit_service` as written.

use std::{collections::BTreeMap, fmt};

use crate::config::spanned::Spanned;
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};

use crate::config::raw::present;
#[cfg(test)]
use crate::config::schema;

/// What the descriptors of Envoy's rate limit filter mean.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(in crate::config) struct RawRateLimitService {
    /// For each domain its mappings: the first that matches a descriptor counts.
    pub(super) domains: Spanned<BTreeMap<String, Spanned<Vec<Spanned<RawMapping>>>>>,
    /// What becomes of a request for another domain: allow, or error. `allow` without.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<schema::UnknownDomain>"))]
    pub(super) unknown_domain: Option<Spanned<String>>,
}

/// What descriptors of one form mean.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct RawMapping {
    /// The entries of the descriptor, in order.
    #[serde(rename = "match")]
    #[cfg_attr(test, schemars(with = "Vec<schema::Entry>"))]
    pub(super) entries: Spanned<Vec<Spanned<RawEntry>>>,
    /// The policy to ask.
    #[serde(default, deserialize_with = "present")]
    pub(super) policy: Option<Spanned<String>>,
    /// Who is counted: entries of the descriptor.
    #[serde(default, deserialize_with = "present")]
    #[cfg_attr(test, schemars(with = "Option<Vec<schema::KeyPart>>"))]
    pub(super) key: Option<Spanned<Vec<Spanned<RawKeyPart>>>>,
    /// Judge, but deny nothing. False without.
    #[serde(default, deserialize_with = "present")]
    pub(super) shadow: Option<Spanned<bool>>,
    /// Not limited at all. False without.
    #[serde(default, deserialize_with = "present")]
    pub(super) unlimited: Option<Spanned<bool>>,
}

/// An entry's key, or `{ KEY: VALUE }`.
pub(super) struct RawEntry {
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// An entry's key, or `{ entry: KEY, secret: true }`.
pub(super) struct RawKeyPart {
    pub(super) entry: String,
    pub(super) secret: bool,
}

impl<'de> Deserialize<'de> for RawEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> de::Visitor<'de> for EntryVisitor {
    type Value = RawEntry;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an entry's key, or { KEY: VALUE }")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<RawEntry, E> {
        Ok(RawEntry { key: key.to_owned(), value: None })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawEntry, A::Error> {
        let one = || de::Error::custom("an entry is a key, or one { KEY: VALUE }");
        let (key, value) = map.next_entry()?.ok_or_else(one)?;
        match map.next_key::<String>()? {
            None => Ok(RawEntry { key, value: Some(value) }),
            Some(_) => Err(one()),
        }
    }
}

impl<'de> Deserialize<'de> for RawKeyPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyPartVisitor)
    }
}

struct KeyPartVisitor;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyPartFields {
    entry: String,
    #[serde(default)]
    secret: bool,
}

impl<'de> de::Visitor<'de> for KeyPartVisitor {
    type Value = RawKeyPart;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an entry's key, or { entry: KEY, secret: true }")
    }

    fn visit_str<E: de::Error>(self, entry: &str) -> Result<RawKeyPart, E> {
        Ok(RawKeyPart { entry: entry.to_owned(), secret: false })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawKeyPart, A::Error> {
        let KeyPartFields { entry, secret } = KeyPartFields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RawKeyPart { entry, secret })
    }
}
