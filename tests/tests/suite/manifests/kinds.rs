//! Each resource is what its kind allows, and no field of it is misspelt.

use std::collections::BTreeSet;

use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Namespace, Service},
    networking::v1::NetworkPolicy,
    policy::v1::PodDisruptionBudget,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{rendered::Rendered, schemas::Schemas};

/// Others' kinds that are held against their definition where it is beside those that must be there.
const WITHOUT_SCHEMA: [&str; 5] = ["DestinationRule", "EnvoyPatchPolicy", "Gateway", "GatewayClass", "HTTPRoute"];

/// What is wrong with a resource.
fn faults(resource: &Value, schemas: &Schemas) -> Vec<String> {
    let kind = resource["kind"].as_str().unwrap_or_default();
    let mut faults = match (resource["apiVersion"].as_str().unwrap_or_default(), kind) {
        ("v1", "Namespace") => typed::<Namespace>(resource),
        ("v1", "ConfigMap") => typed::<ConfigMap>(resource),
        ("v1", "Service") => typed::<Service>(resource),
        ("apps/v1", "Deployment") => typed::<Deployment>(resource),
        ("autoscaling/v2", "HorizontalPodAutoscaler") => typed::<HorizontalPodAutoscaler>(resource),
        ("policy/v1", "PodDisruptionBudget") => typed::<PodDisruptionBudget>(resource),
        ("networking.k8s.io/v1", "NetworkPolicy") => typed::<NetworkPolicy>(resource),
        _ => match schemas.faults(resource) {
            Some(faults) => faults,
            None if WITHOUT_SCHEMA.contains(&kind) => Vec::new(),
            None => vec![format!("nothing here knows {} {kind}", resource["apiVersion"])],
        },
    };
    let spec = &resource["spec"];
    match kind {
        "WasmPlugin" => faults.extend(wasm_plugin(spec)),
        "EnvoyExtensionPolicy" => faults.extend(extension_policy(spec)),
        _ => {}
    }
    faults
}

/// A kind of Kubernetes' own, as a type. It takes fields that it doesn't have, so what it took is compared.
fn typed<T: Serialize + DeserializeOwned>(resource: &Value) -> Vec<String> {
    match serde_json::from_value::<T>(resource.clone()) {
        Ok(taken) => {
            let mut faults = Vec::new();
            lost("", resource, &serde_json::to_value(taken).unwrap(), &mut faults);
            faults
        }
        Err(error) => vec![error.to_string()],
    }
}

fn lost(path: &str, given: &Value, taken: &Value, faults: &mut Vec<String>) {
    match (given, taken) {
        (Value::Object(given), Value::Object(_)) => {
            for (name, value) in given {
                match taken.get(name) {
                    Some(taken) => lost(&format!("{path}/{name}"), value, taken, faults),
                    None => faults.push(format!("{path}/{name}: unknown")),
                }
            }
        }
        (Value::Array(given), Value::Array(taken)) if given.len() == taken.len() => {
            for (index, (given, taken)) in given.iter().zip(taken).enumerate() {
                lost(&format!("{path}/{index}"), given, taken, faults);
            }
        }
        _ if given == taken => {}
        _ => faults.push(format!("{path}: {given} was taken for {taken}")),
    }
}

/// The rules of the definition that no schema can say.
fn wasm_plugin(spec: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let (scheme, rest) = spec["url"].as_str().and_then(|url| url.split_once("://")).unwrap_or_default();
    if !["oci", "http", "https", "file"].contains(&scheme) || rest.is_empty() {
        faults.push(format!("url: {}", spec["url"]));
    }
    if ["selector", "targetRef", "targetRefs"].iter().filter(|field| !spec[**field].is_null()).count() > 1 {
        faults.push("only one of selector, targetRef and targetRefs".to_owned());
    }
    faults
}

/// Likewise.
fn extension_policy(spec: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let one = std::slice::from_ref(&spec["targetRef"]);
    let targets = match (&spec["targetRef"], &spec["targetRefs"]) {
        (Value::Object(_), Value::Null) => one,
        (Value::Null, Value::Array(targets)) => targets,
        _ => return vec!["one of targetRef and targetRefs".to_owned()],
    };
    for target in targets {
        let kinds = ["Gateway", "ListenerSet", "HTTPRoute", "GRPCRoute", "UDPRoute", "TCPRoute", "TLSRoute"];
        if target["group"] != "gateway.networking.k8s.io" || !kinds.iter().any(|kind| target["kind"] == *kind) {
            faults.push(format!("target: {target}"));
        }
    }
    for code in spec["wasm"].as_array().into_iter().flatten().map(|wasm| &wasm["code"]) {
        for (kind, field) in [("HTTP", "http"), ("Image", "image")] {
            if (code["type"] == kind) == code[field].is_null() {
                faults.push(format!("code: type {} and {field}", code["type"]));
            }
        }
    }
    faults
}

#[test]
fn every_resource_is_what_its_kind_allows() {
    let Some(schemas) = Schemas::load() else { return };
    let mut seen = BTreeSet::new();
    for rendered in Rendered::all() {
        for resource in &rendered.documents {
            let faults = faults(resource, &schemas);
            assert!(faults.is_empty(), "{}: {}: {faults:#?}", rendered.folder, resource["kind"]);
            seen.insert(resource["kind"].as_str().unwrap().to_owned());
        }
    }
    for kind in ["WasmPlugin", "EnvoyExtensionPolicy", "Deployment", "NetworkPolicy", "PodDisruptionBudget"] {
        assert!(seen.contains(kind), "{seen:?}");
    }
}

/// The judge can say no.
#[test]
fn a_mistake_in_a_resource_is_found() {
    let Some(schemas) = Schemas::load() else { return };
    let (istio, gateway) = (Rendered::of("envoy/istio/base"), Rendered::of("envoy/gateway"));
    let zero = "0".repeat(63);
    for (rendered, kind, pointer, value) in [
        (&istio, "WasmPlugin", "/spec/failStrateg", json!("FAIL_OPEN")),
        (&istio, "WasmPlugin", "/spec/failStrategy", json!("FAIL_RELAOD")),
        (&istio, "WasmPlugin", "/spec/phase", json!("authz")),
        (&istio, "WasmPlugin", "/spec/priority", json!("10")),
        (&istio, "WasmPlugin", "/spec/sha256", json!(zero)),
        (&istio, "WasmPlugin", "/spec/url", json!("docker://docker.io/sluicegate/filter:0.1.0")),
        (&istio, "WasmPlugin", "/spec/url", json!(null)),
        (&istio, "WasmPlugin", "/spec/selector/matchLabel", json!({ "a": "b" })),
        (&istio, "WasmPlugin", "/spec/targetRefs", json!([{ "kind": "Gateway", "name": "x" }])),
        (&istio, "WasmPlugin", "/spec/pluginConfig", json!("text")),
        (&istio, "WasmPlugin", "/apiVersion", json!("extensions.istio.io/v1")),
        (&gateway, "EnvoyExtensionPolicy", "/spec/wasm/0/failopen", json!(true)),
        (&gateway, "EnvoyExtensionPolicy", "/spec/wasm/0/failOpen", json!("false")),
        (&gateway, "EnvoyExtensionPolicy", "/spec/wasm/0/code/type", json!("HTTP")),
        (&gateway, "EnvoyExtensionPolicy", "/spec/wasm/0/code/image/tag", json!("0.1.0")),
        (&gateway, "EnvoyExtensionPolicy", "/spec/targetRefs/0/kind", json!("Service")),
        (&gateway, "EnvoyExtensionPolicy", "/spec/targetRefs/0/namespace", json!("default")),
        (&gateway, "EnvoyExtensionPolicy", "/spec/targetRef", json!({ "group": "x", "kind": "Gateway", "name": "eg" })),
        (&istio, "Deployment", "/spec/template/spec/containers/0/readinesProbe", json!({})),
        (&istio, "Deployment", "/spec/template/spec/terminationGracePeriodSeconds", json!("30s")),
        (&istio, "Deployment", "/spec/template/spec/securityContext/runAsNonroot", json!(true)),
        (&istio, "Service", "/spec/ports/0/appprotocol", json!("http2")),
        (&istio, "PodDisruptionBudget", "/spec/minAvailabl", json!(1)),
        (&istio, "HorizontalPodAutoscaler", "/spec/metrics/0/resource/targets", json!({})),
        (&istio, "NetworkPolicy", "/spec/ingress/0/froms", json!([])),
    ] {
        let original = rendered.of_kind(kind).next().unwrap();
        assert!(faults(original, &schemas).is_empty(), "{kind}");
        let mut mutant = original.clone();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        mutant.pointer_mut(parent).unwrap()[field] = value.clone();
        assert!(!faults(&mutant, &schemas).is_empty(), "{kind}: {pointer}: {value} was taken");
    }
}
