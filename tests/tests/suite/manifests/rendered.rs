//! The manifests as users apply them.

use std::{fs, path::Path, process::Command};

use serde_json::Value;
use sluicegate_tests::{Tool, repository};

/// Every folder with a kustomization.
pub(super) const FOLDERS: [&str; 4] =
    ["envoy/kubernetes", "envoy/istio/base", "envoy/istio/overlays/production", "envoy/gateway"];

/// What `kubectl kustomize` makes of a folder.
pub(super) struct Rendered {
    pub(super) folder: &'static str,
    pub(super) documents: Vec<Value>,
}

impl Rendered {
    pub(super) fn of(folder: &'static str) -> Self {
        let output =
            Command::new(Tool::Kubectl.path().unwrap()).arg("kustomize").arg(repository(folder)).output().unwrap();
        // It warns of deprecated fields there.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{folder}: {said}");
        let text = String::from_utf8(output.stdout).unwrap();
        let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        assert!(documents.len() > 5, "{folder}: {text}");
        Self { folder, documents }
    }

    pub(super) fn all() -> impl Iterator<Item = Self> {
        FOLDERS.into_iter().map(Self::of)
    }

    pub(super) fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.documents.iter().filter(move |document| document["kind"] == kind)
    }

    /// The one of this kind and name.
    #[track_caller]
    pub(super) fn named<'a>(&'a self, kind: &'a str, name: &'a str) -> &'a Value {
        let mut found = self.of_kind(kind).filter(|document| document["metadata"]["name"] == name);
        let first = found.next().unwrap_or_else(|| panic!("{}: no {kind} {name}", self.folder));
        assert!(found.next().is_none(), "{}: two of {kind} {name}", self.folder);
        first
    }

    pub(super) fn deployment(&self) -> &Value {
        self.named("Deployment", "sluicegate")
    }

    /// The service's configuration, as written and as read.
    pub(super) fn config(&self) -> (&str, Value) {
        let text = self.named("ConfigMap", "sluicegate")["data"]["sluicegate.yaml"].as_str().unwrap();
        (text, serde_saphyr::from_str(text).unwrap())
    }

    /// The manifest with the filter's configuration, and that; the service alone has none.
    pub(super) fn plugin(&self) -> Option<(&Value, &Value)> {
        let istio = self.of_kind("WasmPlugin").map(|document| (document, &document["spec"]["pluginConfig"]));
        let gateway =
            self.of_kind("EnvoyExtensionPolicy").map(|document| (document, &document["spec"]["wasm"][0]["config"]));
        let found: Vec<_> = istio.chain(gateway).collect();
        assert!(found.len() < 2);
        found.first().copied()
    }
}

/// A list, which must be one.
#[track_caller]
pub(super) fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}"))
}

/// A text, which must be one.
#[track_caller]
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}"))
}

#[test]
fn every_kustomization_is_built_here() {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.ends_with("kustomization.yaml") {
                let folder = folder.strip_prefix(repository("")).unwrap();
                found.push(folder.to_str().unwrap().to_owned());
            }
        }
    }
    let (mut found, mut known) = (Vec::new(), FOLDERS.map(str::to_owned).to_vec());
    walk(&repository("envoy"), &mut found);
    found.sort();
    known.sort();
    assert_eq!(found, known);
}
