//! Whom the filter asks is there under the name it has.

use serde_json::{Value, json};

use super::rendered::{Rendered, list, text};

/// The full name of a Service, and its port.
fn address(service: &Value) -> (String, u64) {
    let (name, namespace) = (&service["metadata"]["name"], &service["metadata"]["namespace"]);
    let ports = list(&service["spec"]["ports"]);
    assert_eq!(ports.len(), 1);
    (format!("{}.{}.svc.cluster.local", text(name), text(namespace)), ports[0]["port"].as_u64().unwrap())
}

#[test]
fn istios_cluster_is_that_of_the_service() {
    for folder in ["envoy/istio/base", "envoy/istio/overlays/production"] {
        let rendered = Rendered::of(folder);
        let (host, port) = address(rendered.named("Service", "sluicegate"));
        let (manifest, plugin) = rendered.plugin().unwrap();
        assert_eq!(plugin["service"]["cluster"], format!("outbound|{port}||{host}"));
        assert_eq!(plugin["service"]["authority"], host);
        assert_eq!(rendered.named("DestinationRule", "sluicegate")["spec"]["host"], host);
        // The gateways with the filter are those that the policy admits.
        let policy = rendered.named("NetworkPolicy", "sluicegate-istio");
        let peer = &policy["spec"]["ingress"][0]["from"][0];
        assert_eq!(peer["podSelector"], manifest["spec"]["selector"]);
        assert_eq!(manifest["spec"]["failStrategy"], "FAIL_RELOAD");
        assert_eq!(manifest["spec"]["phase"], "AUTHZ");
        assert_eq!(plugin["metrics"]["labels"], "istio");
        let labels = &rendered.deployment()["spec"]["template"]["metadata"]["labels"];
        assert_eq!(labels["sidecar.istio.io/inject"], "false");
    }
}

/// The cluster that Envoy Gateway's patch adds.
pub(super) fn patched_cluster(rendered: &Rendered) -> &Value {
    let patches = list(&rendered.named("EnvoyPatchPolicy", "sluicegate")["spec"]["jsonPatches"]);
    let [patch] = patches.as_slice() else { panic!("not one patch: {patches:?}") };
    assert_eq!(patch["type"], "type.googleapis.com/envoy.config.cluster.v3.Cluster");
    // With an empty path the value is a resource of its own.
    assert_eq!((&patch["operation"]["op"], &patch["operation"]["path"]), (&json!("add"), &json!("")));
    let cluster = &patch["operation"]["value"];
    assert_eq!(patch["name"], cluster["name"]);
    cluster
}

#[test]
fn envoy_gateways_cluster_is_that_of_the_pods() {
    let rendered = Rendered::of("envoy/gateway");
    let service = rendered.named("Service", "sluicegate-pods");
    assert_eq!(service["spec"]["clusterIP"], "None");
    let (host, port) = address(service);
    let (policy, plugin) = rendered.plugin().unwrap();
    let cluster = patched_cluster(&rendered);
    assert_eq!(plugin["service"]["cluster"], cluster["name"]);
    let endpoint = &cluster["load_assignment"]["endpoints"][0]["lb_endpoints"][0]["endpoint"]["address"];
    assert_eq!(endpoint["socket_address"], json!({ "address": host, "port_value": port }));
    // Both policies are of the one gateway, in its namespace.
    let gateway = rendered.named("Gateway", "eg");
    let target =
        json!({ "group": "gateway.networking.k8s.io", "kind": "Gateway", "name": gateway["metadata"]["name"] });
    let patch = rendered.named("EnvoyPatchPolicy", "sluicegate");
    assert_eq!((&policy["spec"]["targetRefs"], &patch["spec"]["targetRef"]), (&json!([target]), &target));
    for document in [policy, patch] {
        assert_eq!(document["metadata"]["namespace"], gateway["metadata"]["namespace"]);
    }
}
