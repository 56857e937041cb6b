//! The published schema: it is the one of the code, and it takes every configuration that the filter takes.
#![cfg(not(target_arch = "wasm32"))]

mod common;

use std::{cell::Cell, env, fs, path::Path};

use jsonschema::Validator;
use proptest::{prelude::*, sample::subsequence, test_runner::TestRunner};
use serde_json::{Map, Value, json};
use sluicegate_filter_core::{Config, config::schema};

/// `SLUICEGATE_JOIN=1` writes the file anew.
#[test]
fn the_published_schema_is_that_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../envoy/filter-config.schema.json");
    let expected = format!("{:#}\n", schema());
    if env::var_os("SLUICEGATE_JOIN").is_some() {
        fs::write(&file, &expected).unwrap();
    }
    let published = fs::read_to_string(&file).unwrap();
    assert!(published == expected, "out of step: SLUICEGATE_JOIN=1 cargo test -p sluicegate-filter-core published");
}

fn validator() -> Validator {
    jsonschema::meta::validate(&schema()).unwrap();
    jsonschema::validator_for(&schema()).unwrap()
}

#[test]
fn the_schema_finds_what_is_no_configuration() {
    let validator = validator();
    let with = |rule: Value| json!({ "service": { "cluster": "c" }, "rules": [rule] });
    let limit = |limit: Value| with(json!({ "name": "a", "limits": [limit] }));
    assert!(validator.is_valid(&serde_json::from_str(common::CONFIG).unwrap()));
    assert!(validator.is_valid(&limit(json!({ "policy": "p", "key": ["client_ip", { "jwt": { "claim": "sub" } }] }))));
    for bad in [
        json!({}),
        json!({ "service": { "cluster": "c" }, "rules": [], "braker": {} }),
        with(json!({ "name": "a" })),
        with(json!({ "name": "a b", "limits": [] })),
        with(json!({ "name": "a", "limits": [], "timeout": null })),
        with(json!({ "name": "a", "limits": [], "on_failure": "close" })),
        with(json!({ "name": "a", "limits": [], "on_failure": {} })),
        with(json!({ "name": "a", "limits": [], "timeout": "0s" })),
        with(json!({ "name": "a", "limits": [], "charge": { "only_status": [] } })),
        with(json!({ "name": "a", "limits": [], "match": { "methods": [] } })),
        with(json!({ "name": "a", "limits": [], "match": { "path": {} } })),
        with(json!({ "name": "a", "limits": [], "match": { "path": { "exact": "/a", "prefix": "/" } } })),
        with(json!({ "name": "a", "limits": [], "match": { "headers": [{ "name": "x" }] } })),
        with(json!({ "name": "a", "limits": [], "match": { "headers": [{ "name": "x", "present": false }] } })),
        with(json!({ "name": "a", "limits": [], "match": { "headers": [{ "name": "x y", "present": true }] } })),
        limit(json!({ "policy": "p", "key": [] })),
        limit(
            json!({ "policy": "p", "key": ["method", "method", "method", "method", "method", "method", "method", "method", "method"] }),
        ),
        limit(json!({ "policy": "p", "key": [{ "header": ":path" }] })),
        limit(json!({ "policy": "p", "key": ["ip"] })),
        limit(json!({ "policy": "p", "key": [{ "header": "a", "cookie": "b" }] })),
        limit(json!({ "policy": "p", "key": [{ "header": "a", "missing": "skp" }] })),
        limit(json!({ "policy": { "from": "host" }, "key": ["method"] })),
        limit(json!({ "policy": "p", "key": ["method"], "cost": 1.5 })),
    ] {
        assert!(Config::parse(bad.to_string().as_bytes()).is_err(), "{bad}");
        assert!(!validator.is_valid(&bad), "{bad}");
    }
}

/// An object with any of these fields, each with one of its values.
fn object(fields: &[(&'static str, Vec<Value>)]) -> BoxedStrategy<Value> {
    let value = |(name, values): &(&'static str, Vec<Value>)| {
        let name = *name;
        prop::sample::select(values.clone()).prop_map(move |value| (name.to_owned(), value)).boxed()
    };
    let all: Vec<_> = fields.iter().map(value).collect();
    let count = all.len();
    (all, subsequence((0..count).collect::<Vec<_>>(), 0..=count))
        .prop_map(|(fields, chosen)| {
            let chosen = chosen.into_iter().filter_map(|index| fields.get(index).cloned());
            Value::Object(chosen.collect::<Map<_, _>>())
        })
        .boxed()
}

/// `base` with what `more` adds or replaces.
fn merged(mut base: Value, more: &Value) -> Value {
    if let (Value::Object(base), Value::Object(more)) = (&mut base, more) {
        base.extend(more.clone());
    }
    base
}

fn path_match() -> BoxedStrategy<Value> {
    let form = prop_oneof![
        Just(json!({ "exact": "/a" })),
        Just(json!({ "prefix": "/a/" })),
        Just(json!({ "regex": "/[a-z]+" })),
        Just(json!({ "template": "/{id}/x" })),
    ];
    let options = object(&[
        ("ignore_case", vec![json!(true), json!(false), json!(1)]),
        ("trailing_slash", vec![json!("ignore"), json!("strict"), json!(true)]),
    ]);
    (form, options).prop_map(|(form, options)| merged(form, &options)).boxed()
}

fn matcher() -> BoxedStrategy<Value> {
    let others = object(&[
        ("methods", vec![json!("GET"), json!(["GET", "PUT"]), json!("get")]),
        ("hosts", vec![json!("a.b"), json!(["*.a.b", "c"]), json!([])]),
        (
            "headers",
            vec![json!([{ "name": "a", "present": true }, { "name": "b", "regex": "x" }]), json!([]), json!({})],
        ),
        ("client", vec![json!("10.0.0.0/8"), json!(["::1"]), json!("x")]),
        ("route", vec![json!("r"), json!(["r", "s"]), json!(null)]),
    ]);
    (path_match(), others, any::<bool>())
        .prop_map(|(path, others, with)| if with { merged(json!({ "path": path }), &others) } else { others })
        .boxed()
}

fn source() -> BoxedStrategy<Value> {
    prop::sample::select(vec![
        json!("client_ip"),
        json!("method"),
        json!({ "client_ip": { "ipv6_prefix": 56 } }),
        json!({ "client_ip": {} }),
        json!({ "header": "x-a" }),
        json!({ "cookie": "sid" }),
        json!({ "query": "" }),
        json!({ "path_segment": 1.0 }),
        json!({ "path_variable": "id" }),
        json!({ "jwt": { "claim": ["a", "b"], "provider": "p" } }),
        json!({ "mtls": "uri_san" }),
        json!({ "route_metadata": ["a", "b"] }),
        json!({ "property": "a.b" }),
        json!({ "property": ["a"] }),
        json!({ "constant": "" }),
        json!({ "header": 1 }),
        json!(["host"]),
    ])
    .boxed()
}

fn key_part() -> BoxedStrategy<Value> {
    let others = object(&[
        ("secret", vec![json!(true), json!(false), json!("yes")]),
        ("missing", vec![json!("shared"), json!("skip"), json!("deny"), json!({ "value": "" }), json!({})]),
    ]);
    (source(), others).prop_map(|(source, others)| merged(source, &others)).boxed()
}

fn limit() -> BoxedStrategy<Value> {
    let chosen = |from: Value| {
        json!([
            { "policy": { "from": from, "map": { "a": "b" }, "default": "c" } },
            { "policy": "p", "cost": { "from": from, "map": { "a": 2 } } },
            { "policy": "p", "cost": { "from": from, "max": 9, "min": 0, "default": 3.0 } },
            { "policy": "p", "cost": 5 },
            { "policy": "p", "shadow": true },
            { "policy": "p", "cost": -1 },
            { "policy": ["p"] },
        ])
    };
    (prop::collection::vec(key_part(), 0..3), source(), 0_usize..7)
        .prop_map(move |(key, from, form)| merged(json!({ "key": key }), &chosen(from)[form]))
        .boxed()
}

fn rule() -> BoxedStrategy<Value> {
    let others = object(&[
        ("timeout", vec![json!("5ms"), json!("1s"), json!("0s")]),
        ("continue", vec![json!(true), json!(false)]),
        (
            "on_failure",
            vec![
                json!("open"),
                json!("closed"),
                json!({ "closed": { "status": 503 } }),
                json!({ "local": { "capacity": 99, "refill": 1, "per": "1m", "slots": 64 } }),
                json!({}),
            ],
        ),
        ("shadow", vec![json!(true)]),
        ("reject", vec![json!({ "status": 503.0, "body": "x", "headers": { "a": "b" } }), json!({})]),
        ("charge", vec![json!({ "only_status": [401] }), json!({ "only_status": [] })]),
        ("match", vec![json!({})]),
    ]);
    (matcher(), prop::collection::vec(limit(), 0..3), others)
        .prop_map(|(matcher, limits, others)| {
            merged(json!({ "name": "r", "match": matcher, "limits": limits }), &others)
        })
        .boxed()
}

fn configuration() -> BoxedStrategy<Value> {
    let others = object(&[
        ("key_pepper", vec![json!("salt"), json!(1)]),
        ("shadow", vec![json!(true)]),
        ("breaker", vec![json!({ "failures": 3, "open_for": "2s" }), json!({})]),
        ("deny_cache", vec![json!({ "max_entries": 5, "max_life": "1m" }), json!({})]),
        ("reject", vec![json!({ "status": 400 })]),
        ("headers", vec![json!(["rate_limit", "x_rate_limit"]), json!([]), json!(["x"])]),
        ("metrics", vec![json!({ "labels": "istio" }), json!({})]),
    ]);
    let service = object(&[
        ("authority", vec![json!("a")]),
        ("timeout", vec![json!("60s"), json!("61s")]),
        ("headers", vec![json!({ "a": "b" }), json!({})]),
    ]);
    (rule(), others, service)
        .prop_map(|(rule, others, service)| {
            merged(json!({ "service": merged(json!({ "cluster": "c" }), &service), "rules": [rule] }), &others)
        })
        .boxed()
}

#[test]
fn every_configuration_that_is_accepted_is_one_by_the_schema() {
    let (validator, accepted) = (validator(), Cell::new(0_u32));
    let mut runner = TestRunner::new(ProptestConfig::with_cases(4_000));
    let judge = |configuration: Value| {
        if Config::parse(configuration.to_string().as_bytes()).is_ok() {
            accepted.set(accepted.get() + 1);
            prop_assert!(validator.is_valid(&configuration), "{configuration}");
        }
        Ok(())
    };
    runner.run(&configuration(), judge).unwrap();
    assert!(accepted.get() > 100, "only {} of the configurations made were accepted", accepted.get());
}
