//! The guides: what their commands name is there, and what they show is what it says it is.

use std::{collections::BTreeSet, fs};

use serde_json::Value;
use sluicegate_tests::repository;

use super::{
    pods::SECRET,
    rendered::{FOLDERS, Rendered, text},
};

const GUIDES: [&str; 2] = ["docs/istio.md", "docs/envoy-gateway.md"];

/// What others' installations bring.
const OTHERS: [&str; 3] = ["deployment/istio-ingressgateway", "deployment/istiod", "deployment/envoy-gateway"];

/// Kinds by what commands call them.
const KINDS: [(&str, &str); 10] = [
    ("configmap", "ConfigMap"),
    ("deployment", "Deployment"),
    ("destinationrule", "DestinationRule"),
    ("envoyextensionpolicy", "EnvoyExtensionPolicy"),
    ("envoypatchpolicy", "EnvoyPatchPolicy"),
    ("gateway", "Gateway"),
    ("hpa", "HorizontalPodAutoscaler"),
    ("networkpolicy", "NetworkPolicy"),
    ("service", "Service"),
    ("wasmplugin", "WasmPlugin"),
];

/// The fenced blocks of a kind.
fn blocks(guide: &str, kind: &str) -> Vec<String> {
    let text = fs::read_to_string(repository(guide)).unwrap();
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once("```") {
        let (block, next) = after.split_once("```").unwrap_or_else(|| panic!("{guide}: an open block"));
        if let Some(block) = block.strip_prefix(kind).and_then(|block| block.strip_prefix('\n')) {
            blocks.push(block.to_owned());
        }
        rest = next;
    }
    blocks
}

/// What stands behind `$ `, with the lines that a backslash joins.
fn commands(guide: &str) -> Vec<String> {
    let mut commands = Vec::new();
    for block in blocks(guide, "console") {
        let joined = block.replace("\\\n", " ");
        commands.extend(joined.lines().filter_map(|line| line.strip_prefix("$ ")).map(str::to_owned));
    }
    commands
}

fn check_word(word: &str, previous: &str, resources: &[Value], namespaces: &BTreeSet<String>) -> Result<(), String> {
    let clean = word.trim_matches(['\'', '"']);
    if clean.starts_with("envoy/") || clean.starts_with("docs/") {
        if !repository(clean).exists() {
            return Err(format!("{clean} does not exist"));
        }
        if ["-k", "kustomize"].contains(&previous) && !FOLDERS.contains(&clean.trim_end_matches('/')) {
            return Err(format!("{clean} is not built by any test"));
        }
    }
    if ["-n", "--namespace"].contains(&previous) && !namespaces.contains(clean) {
        return Err(format!("no manifest knows the namespace {clean}"));
    }
    let Some((called, name)) = clean.split_once('/') else { return Ok(()) };
    let Some((_, kind)) = KINDS.iter().find(|(known, _)| *known == called) else { return Ok(()) };
    let known = resources.iter().any(|resource| resource["kind"] == *kind && resource["metadata"]["name"] == name);
    if known || OTHERS.contains(&clean) { Ok(()) } else { Err(format!("there is no {clean}")) }
}

/// All resources of all manifests, and the namespaces in which they are or which they name.
fn world() -> (Vec<Value>, BTreeSet<String>) {
    let resources: Vec<Value> = Rendered::all().flat_map(|rendered| rendered.documents).collect();
    let mut namespaces = BTreeSet::new();
    for resource in &resources {
        namespaces.extend(resource["metadata"]["namespace"].as_str().map(str::to_owned));
        for rule in resource["spec"]["ingress"].as_array().into_iter().flatten() {
            for peer in rule["from"].as_array().into_iter().flatten() {
                let selector = &peer["namespaceSelector"];
                let named = selector["matchLabels"]["kubernetes.io/metadata.name"].as_str();
                namespaces.extend(named.map(str::to_owned));
                let listed = selector["matchExpressions"][0]["values"].as_array().into_iter().flatten();
                namespaces.extend(listed.map(|name| text(name).to_owned()));
            }
        }
    }
    (resources, namespaces)
}

#[test]
fn commands_name_what_is_there() {
    let (resources, namespaces) = world();
    for guide in GUIDES {
        let commands = commands(guide);
        assert!(commands.len() >= 8, "{guide}: {commands:#?}");
        for command in commands {
            let words: Vec<_> = command.split_whitespace().collect();
            for (index, word) in words.iter().enumerate() {
                let previous = if index == 0 { "" } else { words[index - 1] };
                check_word(word, previous, &resources, &namespaces)
                    .unwrap_or_else(|e| panic!("{guide}: {command}: {e}"));
            }
        }
    }
}

#[test]
fn words_that_name_nothing_are_found() {
    let (resources, namespaces) = world();
    for (word, previous, fault) in [
        ("envoy/istio/bas", "-k", true),
        ("envoy/istio", "-k", true),
        ("envoy/istio/base", "-k", false),
        ("wasmplugin/sluicegat", "get", true),
        ("wasmplugin/sluicegate", "get", false),
        ("deployment/istiod", "logs", false),
        ("istio-sytem", "-n", true),
        ("istio-system", "-n", false),
    ] {
        assert_eq!(check_word(word, previous, &resources, &namespaces).is_err(), fault, "{previous} {word}");
    }
}

#[test]
fn the_secret_is_made_with_the_keys_that_pods_read() {
    for guide in GUIDES {
        let made = "kubectl create secret generic sluicegate -n sluicegate-system --from-file=secrets";
        assert!(commands(guide).iter().any(|command| command == made), "{guide}");
        let text = fs::read_to_string(repository(guide)).unwrap();
        for (key, _) in SECRET {
            assert!(text.contains(&format!("secrets/{key}")), "{guide}: {key}");
        }
    }
}

#[test]
fn yaml_in_the_guides_is_yaml() {
    for guide in GUIDES {
        let blocks = blocks(guide, "yaml");
        assert!(!blocks.is_empty(), "{guide}");
        for block in blocks {
            serde_saphyr::from_multiple::<Value>(&block).unwrap_or_else(|error| panic!("{guide}: {error}\n{block}"));
        }
    }
}

#[test]
fn links_lead_somewhere() {
    for guide in GUIDES {
        let text = fs::read_to_string(repository(guide)).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        let ours: Vec<_> = targets.filter(|target| !target.is_empty() && !target.contains("://")).collect();
        assert!(ours.len() > 3, "{guide}: {ours:?}");
        for target in ours {
            assert!(repository("docs").join(target).exists(), "{guide}: {target}");
        }
    }
}
