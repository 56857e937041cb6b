//! The JSON Schema of the configuration, from the types that it is read into.
//!
//! Only what those types can't say by themselves is written here: texts with a form of their own, and fields that are a
//! word or an object.

use std::borrow::Cow;

use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema, transform::RecursiveTransform,
};
use serde_json::{Value, json};

use super::{
    forms::{Named, OneOrMany, SecretText, Whole},
    raw::RawConfig,
    raw_choice::{RawChosenCost, RawChosenPolicy, RawCost, RawPolicy},
    raw_failure::{RawFailureForm, RawOnFailure},
    raw_key::{
        FIELDS, MISSING, RawClientIp, RawJwt, RawKeyPart, RawMissing, RawMissingValue, RawMtls, RawProperty, RawSource,
        WORDS,
    },
};
use crate::{Pattern, Span, Timeout};

/// The schema, for editors and for checks before a proxy sees the file (JSON Schema 2020-12).
#[must_use]
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<RawConfig<'_>>();
    schema.insert("title".to_owned(), json!("The configuration of the Sluicegate filter"));
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        let renamed = |(name, schema): (String, Value)| (name.trim_start_matches("Raw").to_owned(), schema);
        *definitions = std::mem::take(definitions).into_iter().map(renamed).collect();
    }
    schema.to_value()
}

/// What may be left out may not be `null`, and definitions have the names of what they define.
fn tidy(schema: &mut Schema) {
    if let Some(Value::Array(kinds)) = schema.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if let [only] = kinds.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(forms)) = schema.get_mut("anyOf") {
        forms.retain(|form| form.get("type") != Some(&json!("null")));
        if let [Value::Object(only)] = forms.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            schema.ensure_object().extend(only);
        }
    }
    if let Some(Value::String(reference)) = schema.get_mut("$ref") {
        *reference = reference.replace("/Raw", "/");
    }
}

/// Implements a schema with a name of its own.
macro_rules! named {
    ($($type:ty = $name:literal, |$generator:ident| $schema:expr;)*) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn json_schema($generator: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    )*};
}

/// Stands for `sluicegate_wire::Name`.
pub(super) struct Name;
/// Stands for `sluicegate_wire::Cost`.
pub(super) struct Cost;
/// A regular expression.
pub(super) struct Regex;
/// A header's name.
pub(super) struct HeaderName;
/// A flag that can only be set.
pub(super) struct True;

named! {
    Name = "Name", |_generator| json_schema!({
        "description": "A name: 1 to 64 of A-Z a-z 0-9 _ . -",
        "type": "string",
        "pattern": "^[A-Za-z0-9_.-]{1,64}$",
    });
    Cost = "Cost", |_generator| json_schema!({
        "description": "A number of tokens.",
        "type": "integer",
        "minimum": 0,
        "maximum": sluicegate_wire::Cost::MAX.tokens(),
    });
    Regex = "Regex", |_generator| json_schema!({
        "description": "A regular expression.",
        "type": "string",
        "maxLength": Pattern::MAX_BYTES,
    });
    HeaderName = "HeaderName", |_generator| json_schema!({
        "description": "A header's name.",
        "type": "string",
        "pattern": "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
    });
    True = "True", |_generator| json_schema!({ "const": true });
    Timeout = "Timeout", |_generator| json_schema!({
        "description": "From 1ms to 60s, such as 25ms or 1s.",
        "type": "string",
        "pattern": "^0*[1-9][0-9]*m?s$",
    });
    Span = "Span", |_generator| json_schema!({
        "description": "From 1ms to 366d, such as 500ms or 1m.",
        "type": "string",
        "pattern": "^0*[1-9][0-9]*(ms|s|m|h|d)$",
    });
    SecretText<'_> = "Text", |_generator| json_schema!({ "type": "string" });
    RawPolicy<'_> = "Policy", |generator| json_schema!({
        "description": "A policy's name, or how to choose one.",
        "anyOf": [generator.subschema_for::<Name>(), generator.subschema_for::<RawChosenPolicy<'_>>()],
    });
    RawCost<'_> = "CostOrChoice", |generator| json_schema!({
        "description": "A number of tokens, or how to get one.",
        "anyOf": [generator.subschema_for::<Cost>(), generator.subschema_for::<RawChosenCost<'_>>()],
    });
    RawOnFailure = "OnFailure", |generator| json_schema!({
        "description": "What to do without an answer of the service.",
        "anyOf": [{ "enum": ["open", "closed"] }, generator.subschema_for::<RawFailureForm>()],
    });
    RawProperty<'_> = "Property", |generator| json_schema!({
        "description": "The path of a property: a list, or a text with dots between.",
        "anyOf": [{ "type": "string", "minLength": 1 }, generator.subschema_for::<Vec<String>>()],
    });
    RawMissing<'_> = "Missing", |generator| json_schema!({
        "description": "What becomes of a request without the value. Sent several times it counts as missing; then `skip` is as `shared`. `shared` without.",
        "anyOf": [{ "enum": MISSING }, generator.subschema_for::<RawMissingValue<'_>>()],
    });
    RawSource<'_> = "Source", |generator| source(generator, &[]);
    RawKeyPart<'_> = "KeyPart", |generator| {
        let secret = json!({ "description": "Send a digest instead of the value. False without.", "type": "boolean" });
        let missing = generator.subschema_for::<RawMissing<'_>>().to_value();
        source(generator, &[("secret", secret), ("missing", missing)])
    };
}

/// A word, or an object with one of the fields and any of `others`.
fn source(generator: &mut SchemaGenerator, others: &[(&str, Value)]) -> Schema {
    let text = |description: &str| json!({ "description": description, "type": "string" });
    let mut header = generator.subschema_for::<HeaderName>();
    header.insert("description".to_owned(), json!("A header, by its name."));
    let mut properties = json!({
        "header": header,
        "cookie": text("A cookie, decoded."),
        "query": text("A parameter of the query, decoded."),
        "path_segment": {
            "description": "A segment of the path, counted from 0.", "type": "integer", "minimum": 0, "maximum": 255,
        },
        "path_variable": text("A {name} in the template of the rule's path."),
        "jwt": generator.subschema_for::<RawJwt<'_>>(),
        "mtls": generator.subschema_for::<RawMtls>(),
        "route_metadata": {
            "description": "Metadata of the proxy's route: the namespace, then names.",
            "type": "array", "items": { "type": "string" }, "minItems": 2,
        },
        "property": generator.subschema_for::<RawProperty<'_>>(),
        "constant": text("Always this."),
        "client_ip": generator.subschema_for::<RawClientIp>(),
    });
    if let Value::Object(properties) = &mut properties {
        properties.extend(others.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())));
    }
    json_schema!({
        "anyOf": [
            { "enum": WORDS },
            { "type": "object", "properties": properties, "additionalProperties": false, "oneOf": one_of(FIELDS) },
        ],
    })
}

/// That an object has exactly one of these fields.
pub(super) fn one_of(fields: &[&str]) -> Value {
    fields.iter().map(|field| json!({ "required": [field] })).collect()
}

impl<const MIN: u64, const MAX: u64> JsonSchema for Whole<MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("Whole{MIN}To{MAX}"))
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": MIN, "maximum": MAX })
    }
}

impl<T: JsonSchema> JsonSchema for Named<'_, T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("Named{}", T::schema_name()))
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": generator.subschema_for::<T>() })
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("OneOrMany{}", T::schema_name()))
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] })
    }
}
