//! The service's pods: what they run as, what they are given, who can reach them.

use std::{fs, process::Command};

use serde_json::{Value, json};
use sluicegate_tests::Tool;
use tempfile::TempDir;

use super::rendered::{Rendered, list, text};

/// What the guides tell to put into the Secret.
pub(super) const SECRET: [(&str, &str); 2] = [("admin-token", "of-the-admin"), ("redis-password", "of-redis")];

const LABELS: &str = "/spec/template/metadata/labels";
const POD: &str = "/spec/template/spec";

/// The files that a pod would see, in a folder of the test's own.
pub(super) struct Files {
    folder: TempDir,
    mounts: Vec<String>,
}

impl Files {
    pub(super) fn of(rendered: &Rendered) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mounts = Vec::new();
        let pod = rendered.deployment().pointer(POD).unwrap();
        for mount in list(&pod["containers"][0]["volumeMounts"]) {
            assert_eq!(mount.get("subPath"), None, "a file that would never change");
            let path = text(&mount["mountPath"]);
            let volume = list(&pod["volumes"]).iter().find(|volume| volume["name"] == mount["name"]).unwrap();
            let files: Vec<(&str, &str)> = if let Some(secret) = volume.get("secret") {
                assert_eq!(secret, &json!({ "secretName": "sluicegate" }));
                SECRET.to_vec()
            } else {
                let data = rendered.named("ConfigMap", text(&volume["configMap"]["name"]))["data"].as_object().unwrap();
                data.iter().map(|(name, data)| (name.as_str(), text(data))).collect()
            };
            let inside = folder.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(&inside).unwrap();
            for (name, data) in files {
                fs::write(inside.join(name), data).unwrap();
            }
            mounts.push(path.to_owned());
        }
        Self { folder, mounts }
    }

    /// A text in which each mounted folder is where it is here.
    pub(super) fn moved(&self, text: &str) -> String {
        let here = self.folder.path().to_str().unwrap();
        self.mounts.iter().fold(text.to_owned(), |text, mount| text.replace(mount, &format!("{here}{mount}")))
    }
}

fn duration_s(config: &Value) -> u64 {
    text(config).strip_suffix('s').unwrap().parse().unwrap()
}

/// Whether these pods are chosen by a selector of `matchLabels` alone.
fn selects(selector: &Value, rendered: &Rendered) -> bool {
    let labels = rendered.deployment().pointer(LABELS).unwrap();
    selector
        .as_object()
        .is_some_and(|wanted| !wanted.is_empty() && wanted.iter().all(|(name, value)| labels.get(name) == Some(value)))
}

fn container(rendered: &Rendered) -> &Value {
    rendered.deployment().pointer(&format!("{POD}/containers/0")).unwrap()
}

/// The number of a port of the container, by name.
fn port(rendered: &Rendered, name: &Value) -> u64 {
    let ports = list(&container(rendered)["ports"]);
    ports.iter().find(|port| &port["name"] == name).unwrap_or_else(|| panic!("no port {name}"))["containerPort"]
        .as_u64()
        .unwrap()
}

#[test]
fn everything_that_chooses_pods_chooses_these() {
    for rendered in Rendered::all() {
        let deployment = rendered.deployment();
        let mut selectors = vec![&deployment["spec"]["selector"]["matchLabels"]];
        let spread = list(deployment.pointer(&format!("{POD}/topologySpreadConstraints")).unwrap());
        selectors.extend(spread.iter().map(|spread| &spread["labelSelector"]["matchLabels"]));
        selectors.extend(rendered.of_kind("Service").map(|service| &service["spec"]["selector"]));
        let budget = rendered.named("PodDisruptionBudget", "sluicegate");
        selectors.push(&budget["spec"]["selector"]["matchLabels"]);
        selectors.extend(rendered.of_kind("NetworkPolicy").map(|policy| &policy["spec"]["podSelector"]["matchLabels"]));
        assert!(selectors.len() >= 6, "{selectors:?}");
        for selector in selectors {
            assert!(selects(selector, &rendered), "{}: {selector}", rendered.folder);
        }
        let scaler = &rendered.named("HorizontalPodAutoscaler", "sluicegate")["spec"];
        for field in ["kind", "apiVersion"] {
            assert_eq!(scaler["scaleTargetRef"][field], deployment[field]);
        }
        assert_eq!(scaler["scaleTargetRef"]["name"], deployment["metadata"]["name"]);
        // It is the autoscaler's, and one that may go leaves one.
        assert_eq!(deployment["spec"].get("replicas"), None);
        assert!(scaler["minReplicas"].as_u64().unwrap() >= 2);
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        // Shares of nothing can't be counted.
        assert!(container(&rendered)["resources"]["requests"]["cpu"].is_string());
    }
}

#[test]
fn ports_are_those_of_the_configuration() {
    for rendered in Rendered::all() {
        let (_, config) = rendered.config();
        let number = |address: &Value| text(address).rsplit_once(':').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(port(&rendered, &json!("check")), number(&config["listen"]), "{}", rendered.folder);
        assert_eq!(port(&rendered, &json!("admin")), number(&config["admin"]["listen"]));
        for (probe, path) in [("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")] {
            assert_eq!(container(&rendered)[probe]["httpGet"], json!({ "path": path, "port": "admin" }));
        }
        let annotations = &rendered.deployment()["spec"]["template"]["metadata"]["annotations"];
        assert_eq!(annotations["prometheus.io/port"], number(&config["admin"]["listen"]).to_string());
        for service in rendered.of_kind("Service") {
            for entry in list(&service["spec"]["ports"]) {
                assert_eq!(entry["targetPort"], "check");
                // A service without an address of its own has no other ports than its pods.
                assert_eq!(entry["port"].as_u64().unwrap(), port(&rendered, &entry["targetPort"]));
                assert_eq!(entry["appProtocol"], "kubernetes.io/h2c");
            }
        }
    }
}

#[test]
fn policies_admit_proxies_and_monitoring_and_reach_the_store() {
    for rendered in Rendered::all() {
        let policies: Vec<_> = rendered.of_kind("NetworkPolicy").collect();
        let rules = |direction: &'static str| {
            policies.iter().flat_map(move |policy| policy["spec"][direction].as_array()).flatten()
        };
        let ports = |rule: &Value| list(&rule["ports"]).iter().map(|entry| entry["port"].clone()).collect::<Vec<_>>();
        let admitted: Vec<_> = rules("ingress").flat_map(ports).collect();
        assert!(admitted.contains(&json!("admin")), "{}: {admitted:?}", rendered.folder);
        assert_eq!(admitted.contains(&json!("check")), rendered.plugin().is_some(), "{}", rendered.folder);
        // From nobody in particular would be from everybody.
        for rule in rules("ingress") {
            for peer in list(&rule["from"]) {
                assert!(peer.get("namespaceSelector").is_some_and(|peer| peer != &json!({})), "{peer}");
            }
            for name in ports(rule) {
                port(&rendered, &name);
            }
        }
        let (_, config) = rendered.config();
        let store = text(&config["store"]["url"]).rsplit_once(':').unwrap().1.parse::<u64>().unwrap();
        let reached: Vec<_> = rules("egress").flat_map(ports).collect();
        assert_eq!(reached, [json!(53), json!(53), json!(store)], "{}", rendered.folder);
    }
}

#[test]
fn a_pod_has_few_rights_and_time_to_stop() {
    for rendered in Rendered::all() {
        let pod = rendered.deployment().pointer(POD).unwrap();
        assert_eq!(pod["automountServiceAccountToken"], false);
        assert_eq!(pod["enableServiceLinks"], false);
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        let expected = json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        });
        assert_eq!(container(&rendered)["securityContext"], expected);
        let (_, config) = rendered.config();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert!(grace > duration_s(&config["drain"]) + 10, "{}", rendered.folder);
    }
}

/// A pod that leaves has been replaced before, and answers until proxies have heard of it.
#[test]
fn an_update_loses_no_request() {
    for rendered in Rendered::all() {
        assert_eq!(rendered.deployment()["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
        let (_, config) = rendered.config();
        assert!(duration_s(&config["drain"]) >= 5, "{}", rendered.folder);
        // One that can't decide is left alone soon.
        let probe = &container(&rendered)["readinessProbe"];
        let noticed_s = ["periodSeconds", "failureThreshold"].map(|field| probe[field].as_u64().unwrap());
        assert!(noticed_s[0] * noticed_s[1] <= 10, "{probe}");
    }
}

#[test]
fn the_namespace_and_the_store_are_those_that_are_named() {
    for rendered in Rendered::all() {
        let namespace = rendered.named("Namespace", text(&rendered.deployment()["metadata"]["namespace"]));
        assert_eq!(namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
        // A store in the cluster is in the same namespace, under the name that the way out is for.
        let way_out = &rendered.named("NetworkPolicy", "sluicegate")["spec"]["egress"][1]["to"][0];
        let (_, config) = rendered.config();
        let store = text(&config["store"]["url"]);
        if store.contains(".svc.") {
            let labels = &way_out["podSelector"]["matchLabels"];
            let name = text(&labels["app.kubernetes.io/name"]);
            let host = format!("redis://{name}.{}.svc.cluster.local:", text(&namespace["metadata"]["name"]));
            assert!(store.starts_with(&host), "{store}: {host}");
        } else {
            assert!(way_out["ipBlock"]["cidr"].is_string(), "{way_out}");
        }
    }
}

#[test]
fn images_are_of_this_version() {
    for rendered in Rendered::all() {
        let mut images = vec![text(&container(&rendered)["image"])];
        if let Some((manifest, _)) = rendered.plugin() {
            let spec = &manifest["spec"];
            let filter = spec["url"].as_str().unwrap_or_else(|| text(&spec["wasm"][0]["code"]["image"]["url"]));
            images.push(filter);
        }
        for (image, name) in images.iter().zip(["sluicegate", "filter"]) {
            let expected = format!("/sluicegate/{name}:{}", env!("CARGO_PKG_VERSION"));
            assert!(image.ends_with(&expected), "{}: {image}", rendered.folder);
        }
    }
}

/// As `sluicegate check-config FILE --filter MANIFEST`, with the files where a pod has them.
#[test]
fn the_service_takes_its_configuration_and_the_filters() {
    for rendered in Rendered::all() {
        let files = Files::of(&rendered);
        let arguments = list(&container(&rendered)["args"]);
        assert_eq!(arguments[..2], [json!("serve"), json!("--config")]);
        let config = files.moved(text(&arguments[2]));
        fs::write(&config, files.moved(&fs::read_to_string(&config).unwrap())).unwrap();
        let mut command = Command::new(Tool::Service.path().unwrap());
        command.args(["check-config", &config]);
        let manifest = files.folder.path().join("manifest.yaml");
        if let Some((document, _)) = rendered.plugin() {
            fs::write(&manifest, document.to_string()).unwrap();
            command.arg("--filter").arg(&manifest);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("warning"), "{}: {said}", rendered.folder);
        let rules = rendered.plugin().map_or(0, |(_, plugin)| list(&plugin["rules"]).len());
        assert_eq!(rules > 0, said.contains(&format!("rules: {rules}")), "{}: {said}", rendered.folder);
    }
}
