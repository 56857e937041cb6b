//! Resources of others' kinds, judged as the API server does: by the OpenAPI schema in their definition.
//!
//! The definitions are not part of this repository. They stand beside it, or where `SLUICEGATE_SCHEMAS` says.

use std::{
    collections::BTreeMap,
    env, fs,
    io::{Write as _, stderr},
    path::PathBuf,
};

use jsonschema::Validator;
use serde_json::{Map, Value, json};
use sluicegate_tests::repository;

/// Without these nothing is tested.
const REQUIRED: [&str; 2] =
    ["extensions.istio.io/v1alpha1 WasmPlugin", "gateway.envoyproxy.io/v1alpha1 EnvoyExtensionPolicy"];

const FIX: &str = "put Istio's and Envoy Gateway's definitions into ../shared/schemas beside the repository, or where \
     SLUICEGATE_SCHEMAS says: wasmplugin-crd.yaml with the WasmPlugin of \
     https://github.com/istio/istio/blob/master/manifests/charts/base/files/crd-all.gen.yaml and \
     https://github.com/envoyproxy/gateway/blob/main/charts/gateway-crds-helm/templates/generated/gateway.envoyproxy.io_envoyextensionpolicies.yaml";

/// Validators by `GROUP/VERSION KIND`.
pub(super) struct Schemas(BTreeMap<String, Validator>);

impl Schemas {
    /// All definitions in the folder, one of which missing fails the test. Without the folder there is nothing to judge by:
    /// that fails in CI, and elsewhere is said past the test runner, which keeps to itself what passing tests print.
    pub(super) fn load() -> Option<Self> {
        let folder = env::var_os("SLUICEGATE_SCHEMAS").map_or_else(|| repository("../shared/schemas"), PathBuf::from);
        if !folder.exists() && env::var_os("CI").is_none_or(|ci| ci.is_empty()) {
            let folder = folder.display();
            let notice = format!("NOT CHECKED, manifests against the schemas of their kinds: no {folder}: {FIX}\n");
            stderr().write_all(notice.as_bytes()).unwrap();
            return None;
        }
        let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}: {FIX}", folder.display()));
        let mut schemas = BTreeMap::new();
        for file in
            files.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        {
            let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(&file).unwrap()).unwrap();
            for definition in documents.iter().filter(|document| document["kind"] == "CustomResourceDefinition") {
                let (group, kind) = (&definition["spec"]["group"], &definition["spec"]["names"]["kind"]);
                for version in definition["spec"]["versions"].as_array().unwrap() {
                    let name = format!(
                        "{}/{} {}",
                        group.as_str().unwrap(),
                        version["name"].as_str().unwrap(),
                        kind.as_str().unwrap()
                    );
                    let schema = root(&version["schema"]["openAPIV3Schema"]);
                    schemas.insert(name, jsonschema::validator_for(&schema).unwrap());
                }
            }
        }
        for required in REQUIRED {
            assert!(schemas.contains_key(required), "no {required} in {}: {FIX}", folder.display());
        }
        Some(Self(schemas))
    }

    /// What the API server would say against a resource, or nothing at all where its kind is not known here.
    pub(super) fn faults(&self, resource: &Value) -> Option<Vec<String>> {
        let name = format!("{} {}", resource["apiVersion"].as_str()?, resource["kind"].as_str()?);
        let errors = self.0.get(&name)?.iter_errors(resource);
        Some(errors.map(|error| format!("{}: {error}", error.instance_path())).collect())
    }
}

/// What every resource has besides is the API server's own.
fn root(schema: &Value) -> Value {
    let mut schema = closed(schema);
    let own =
        json!({ "apiVersion": { "type": "string" }, "kind": { "type": "string" }, "metadata": { "type": "object" } });
    let properties = schema["properties"].as_object_mut().unwrap();
    properties.extend(own.as_object().unwrap().clone());
    schema
}

/// A structural schema as JSON Schema: the API server drops fields that it doesn't know, or refuses them when asked to be
/// strict, as `kubectl apply` does; here they are faults.
fn closed(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut members = members.clone();
    let open = members.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    if let Some(Value::Object(properties)) = members.get_mut("properties") {
        let defaults: Vec<String> = properties
            .iter()
            .filter(|(_, field)| field.get("default").is_some())
            .map(|(name, _)| name.clone())
            .collect();
        properties.values_mut().for_each(|field| *field = closed(field));
        // Defaults are filled in before anything is required.
        if let Some(Value::Array(required)) = members.get_mut("required") {
            required.retain(|name| !defaults.iter().any(|default| name == default));
        }
        if !open && !members.contains_key("additionalProperties") {
            members.insert("additionalProperties".to_owned(), false.into());
        }
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(schema) = members.get_mut(inner) {
            *schema = closed(schema);
        }
    }
    allow_null(&mut members);
    Value::Object(members)
}

fn allow_null(members: &mut Map<String, Value>) {
    if members.remove("nullable") == Some(Value::Bool(true)) {
        if let Some(kind) = members.get_mut("type") {
            *kind = json!([kind.clone(), "null"]);
        }
        if let Some(Value::Array(words)) = members.get_mut("enum") {
            words.push(Value::Null);
        }
    }
}

#[test]
fn unknown_fields_defaults_null_and_free_parts_are_as_the_api_server_has_them() {
    let schema = root(&json!({
        "type": "object",
        "properties": { "spec": {
            "type": "object",
            "required": ["size", "mode"],
            "properties": {
                "size": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "mode": { "type": "string", "default": "a" },
                "rank": { "type": "integer", "nullable": true },
                "free": { "type": "object", "x-kubernetes-preserve-unknown-fields": true },
                "labels": { "type": "object", "additionalProperties": { "type": "string" } },
                "items": { "type": "array", "items": { "type": "object", "properties": { "name": { "type": "string" } } } },
            },
        } },
    }));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let valid = |spec: Value| validator.is_valid(&json!({ "kind": "X", "metadata": { "name": "x" }, "spec": spec }));
    for good in [
        json!({ "size": 1 }),
        json!({ "size": "10%", "rank": null, "free": { "any": { "thing": [1] } }, "labels": { "a": "b" } }),
        json!({ "size": 1, "items": [{ "name": "a" }] }),
    ] {
        assert!(valid(good.clone()), "{good}");
    }
    for bad in [
        json!({}),
        json!({ "size": 1.5 }),
        json!({ "size": 1, "sizes": 1 }),
        json!({ "size": 1, "rank": "1" }),
        json!({ "size": 1, "labels": { "a": 1 } }),
        json!({ "size": 1, "items": [{ "nam": "a" }] }),
    ] {
        assert!(!valid(bad.clone()), "{bad}");
    }
}
