//! Whom an operator means: a key as in a check, or as the service shows it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;
use sluicegate_wire::{EncodedSubject, Pepper, Subject};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, Ref, RefOr, Schema, Type,
        schema::{AdditionalProperties, AnyOfBuilder},
    },
};

/// A subject.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// As in a check.
    Raw(Subject),
    /// As it stands in the store's keys, and as peek and top show it: the only form left of a secret.
    Encoded(EncodedSubject),
}

impl Key {
    /// The subject as it stands in keys.
    pub(super) fn encode(&self, pepper: Option<&Pepper>) -> EncodedSubject {
        match self {
            Self::Raw(subject) => subject.encode(pepper),
            Self::Encoded(encoded) => encoded.clone(),
        }
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let Value::Object(fields) = &value else {
            return Subject::deserialize(value).map(Self::Raw).map_err(de::Error::custom);
        };
        match fields.get("encoded") {
            Some(Value::String(text)) if fields.len() == 1 => {
                text.parse().map(Self::Encoded).map_err(|error| de::Error::custom(format_args!("encoded: {error}")))
            }
            _ => Err(de::Error::custom(
                "a key is a text, an array of parts, or {\"encoded\": …} as peek and top show it",
            )),
        }
    }
}

impl Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Raw(subject) => subject.serialize(serializer),
            Self::Encoded(encoded) => serde_json::json!({ "encoded": encoded.as_str() }).serialize(serializer),
        }
    }
}

/// As little as a subject shows.
impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Raw(subject) => subject.fmt(formatter),
            Self::Encoded(encoded) => encoded.fmt(formatter),
        }
    }
}

macro_rules! part {
    () => {
        "(#[0-9a-f]{32}|([A-Za-z0-9._~@-]|%([0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|5[B-E]|60|7[BCDF]))*)"
    };
}

/// An encoded subject: parts with `+` between them, each percent-encoded or a digest; or one digest of the whole.
const ENCODED_PATTERN: &str = concat!("^(##[0-9a-f]{32}|", part!(), r"(\+", part!(), ")*)$");

/// The schema of an encoded subject.
pub(super) struct Encoded;

impl PartialSchema for Encoded {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(ENCODED_PATTERN))
            .max_length(Some(EncodedSubject::MAX_BYTES))
            .description(Some("The subject as peek and top show it."))
            .into()
    }
}

impl ToSchema for Encoded {}

impl PartialSchema for Key {
    fn schema() -> RefOr<Schema> {
        let strict = AdditionalProperties::<Schema>::FreeForm(false);
        let encoded = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(strict));
        AnyOfBuilder::new()
            .item(Ref::from_schema_name(Subject::name()))
            .item(encoded.property("encoded", Encoded::schema()).required("encoded"))
            .into()
    }
}

impl ToSchema for Key {
    fn name() -> std::borrow::Cow<'static, str> {
        "AdminKey".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((Subject::name().into_owned(), Subject::schema()));
    }
}
