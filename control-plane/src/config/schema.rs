//! The JSON Schema of the configuration, from the types that it is read into: for editors, and published as
//! `sluicegate.schema.json`.
//!
//! Only what those types can't say by themselves is written here.

use std::{borrow::Cow, env, fs, path::Path};

use schemars::{
    JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema, transform::RecursiveTransform,
};
use serde_json::{Value, json};

use super::{Config, raw::RawConfig, spanned::Spanned};

/// The schema (JSON Schema draft 7, which every editor's YAML support knows).
fn schema() -> Value {
    let settings = SchemaSettings::draft07().with_transform(RecursiveTransform(tidy));
    let mut schema = settings.into_generator().into_root_schema_for::<RawConfig>();
    schema.insert("title".to_owned(), json!("The configuration of the Sluicegate service"));
    if let Some(Value::Object(definitions)) = schema.get_mut("definitions") {
        let renamed = |(name, schema): (String, Value)| (name.trim_start_matches("Raw").to_owned(), schema);
        *definitions = std::mem::take(definitions).into_iter().map(renamed).collect();
        if let Some(Value::Object(limit)) = definitions.get_mut("Limit") {
            // The fields of one kind are none of the other's.
            let no = |fields: &[&str]| json!({ "anyOf": fields.iter().map(|f| json!({ "required": [f] })).collect::<Vec<_>>() });
            limit.insert(
                "oneOf".to_owned(),
                json!([
                    { "required": ["capacity", "refill", "per"], "not": no(&["quota", "every", "time_zone"]) },
                    { "required": ["quota", "every"], "not": no(&["capacity", "refill", "per", "interval"]) },
                ]),
            );
        }
    }
    schema.to_value()
}

/// What may be left out may not be `null`, and definitions have the names of what they define.
fn tidy(schema: &mut Schema) {
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    // Formats such as uint64 are none of JSON Schema.
    schema.remove("format");
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

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Implements an inline schema.
macro_rules! inline {
    ($($type:ty = $name:literal, $schema:tt;)*) => {$(
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                Cow::Borrowed($name)
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    )*};
}

/// Stands for [`sluicegate_wire::Name`].
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name;
/// Stands for a text that `duration.rs` reads, or that a variable completes.
pub(super) struct Duration;
/// Stands for [`sluicegate_lua::Every`].
pub(super) struct Every;
/// Stands for an entry of a descriptor that is matched.
pub(super) struct Entry;
/// Stands for a part of a key made of a descriptor's entries.
pub(super) struct KeyPart;
/// The words of `rate_limit_service.unknown_domain`.
pub(super) struct UnknownDomain;

inline! {
    Name = "Name", { "title": "1 to 64 of A-Z a-z 0-9 _ . -", "type": "string", "pattern": "^[A-Za-z0-9_.-]{1,64}$" };
    Duration = "Duration", {
        "title": "a duration, such as 20ms, 1.5s or 7d",
        "type": "string",
        "pattern": r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)$|\$\{",
    };
    Every = "Every", { "enum": ["minute", "hour", "day", "week", "month"] };
    UnknownDomain = "UnknownDomain", { "enum": ["allow", "error"] };
    Entry = "Entry", {
        "description": "An entry's key, or { KEY: VALUE }.",
        "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "additionalProperties": { "type": ["string", "number", "boolean"] },
                "minProperties": 1,
                "maxProperties": 1,
            },
        ],
    };
    KeyPart = "KeyPart", {
        "description": "An entry's key, or { entry: KEY, secret: true }.",
        "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": {
                    "entry": { "description": "The entry's key.", "type": "string" },
                    "secret": {
                        "description": "Keep a digest instead of the value. False without.",
                        "type": "boolean",
                    },
                },
                "required": ["entry"],
                "additionalProperties": false,
            },
        ],
    };
}

fn repository(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

/// `SLUICEGATE_JOIN=1` writes the file anew.
#[test]
fn the_published_schema_is_that_of_the_code() {
    let file = repository("sluicegate.schema.json");
    let expected = format!("{:#}\n", schema());
    if env::var_os("SLUICEGATE_JOIN").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap();
    assert!(published == expected, "out of step: SLUICEGATE_JOIN=1 cargo test -p sluicegate-control-plane published");
}

/// Whether the schema takes a file, and whether the service does.
fn judged(text: &str) -> (bool, Result<Config, String>) {
    jsonschema::meta::validate(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let tree: Value = serde_saphyr::from_str(text).unwrap();
    let parsed = Config::parse("f.yaml", text, &|_| Some("1s".to_owned()));
    (validator.is_valid(&tree), parsed.map_err(|errors| errors.to_string()))
}

const GOOD: &str =
    "store: { url: memory:// }\npolicies: { a: { limits: [{ name: b, capacity: 1, refill: 1, per: 1s }] } }\n";

#[test]
fn schema_and_service_take_the_same_files() {
    let own = fs::read_to_string(repository("sluicegate.yaml")).unwrap();
    assert!(own.starts_with("# yaml-language-server: $schema=sluicegate.schema.json\n"));
    let policy = |policy: &str| format!("store: {{ url: memory:// }}\npolicies: {{ a: {policy} }}");
    let limit = |limit: &str| policy(&format!("{{ limits: [{limit}] }}"));
    let with = |field: &str| format!("{GOOD}{field}\n");
    for good in [
        own,
        GOOD.to_owned(),
        with("listen: 127.0.0.1:1\nadmin: { listen: 'unix:/s', token: x }\ndrain: '${DRAIN}'\nrefunds: true"),
        with("key_pepper: x\nmax_connections: 5\nreuse_port: true\ntoken: abcdefghijklmnopqrstuvwxyz0123456789"),
        with(
            "rate_limit_service: { unknown_domain: error, domains: { d: [{ match: [{ k: v }, u], policy: a, key: [u, { entry: k, secret: true }] }, { match: [w], unlimited: true }] } }",
        ),
        GOOD.replace(
            "url: memory://",
            "url: redis://h, timeout: 1.5s, prefix: a.b, connections: 64, max_in_flight: 1, username: u, password: p",
        ),
        limit("{ name: b, capacity: 1, refill: 1, per: 1.5s, interval: true }"),
        limit("{ name: b, quota: 1, every: month, time_zone: Europe/Paris }"),
        policy(
            "{ limits: [{ name: b, quota: 1, every: day }], ban: { after: 1, within: 1m, for: 1h }, overrides: true }",
        ),
    ] {
        let (valid, parsed) = judged(&good);
        assert!(parsed.is_ok(), "{parsed:?}\n{good}");
        assert!(valid, "by the schema it is bad:\n{good}");
    }
    for bad in [
        "{}".to_owned(),
        with("lisen: 127.0.0.1:1"),
        with("listen: null"),
        with("listen: [a]"),
        with("drain: 5"),
        with("drain: 5 s"),
        with("refunds: maybe"),
        with("admin: { tokn: x }"),
        with("rate_limit_service: { unknown_domain: deny, domains: {} }"),
        with("rate_limit_service: { domains: { d: [{ match: [{ k: v, l: w }], policy: a, key: [k] }] } }"),
        GOOD.replace("url: memory://", "url: redis://h, connections: 65"),
        GOOD.replace("url: memory://", "uri: redis://h"),
        policy("{ limits: [] }"),
        policy("{ limit: [] }"),
        limit("{ name: a b, capacity: 1, refill: 1, per: 1s }"),
        limit("{ name: b, capacity: 0, refill: 1, per: 1s }"),
        limit("{ name: b, capacity: 1.5, refill: 1, per: 1s }"),
        limit("{ name: b, capacity: 1, refill: 1 }"),
        limit("{ name: b, capacty: 1, refill: 1, per: 1s }"),
        limit("{ name: b, capacity: 1, refill: 1, per: 1s, quota: 1, every: day }"),
        limit("{ name: b, quota: 1, every: year }"),
        limit("{ name: b, quota: 1, every: day, interval: true }"),
        policy("{ limits: [{ name: b, quota: 1, every: day }], ban: { after: 0, within: 1m, for: 1h } }"),
        "store: { url: memory:// }\npolicies: { a/b: { limits: [{ name: b, quota: 1, every: day }] } }".to_owned(),
        "store: { url: memory:// }\npolicies: {}".to_owned(),
    ] {
        let (valid, parsed) = judged(&bad);
        assert!(parsed.is_err(), "the service takes it:\n{bad}");
        assert!(!valid, "by the schema it is good:\n{bad}");
    }
}
