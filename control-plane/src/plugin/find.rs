//! Finds the filter's configurations in a file: the file itself, an Envoy configuration, manifests of Istio and Envoy Gateway.

use std::borrow::Cow;

use serde_saphyr::Location;

use super::tree::{self, Node, Tree};

/// A configuration of the filter.
pub(super) struct Plugin<'t> {
    pub(super) tree: Cow<'t, Tree>,
    /// Where all of it is, when it is a text within a text: then the places in the tree are not those in the file.
    pub(super) inside: Option<Location>,
}

/// All in these documents. A document that has none inside and is nothing else is one itself.
///
/// # Errors
/// When a configuration is a text that isn't JSON; with the text's place.
pub(super) fn plugins(documents: &[Tree]) -> Result<Vec<Plugin<'_>>, (Location, String)> {
    let mut found = Vec::new();
    for document in documents {
        let before = found.len();
        search(document, &mut found)?;
        let is_other = ["static_resources", "dynamic_resources", "resources", "kind", "apiVersion"]
            .iter()
            .any(|field| document.get(field).is_some());
        if found.len() == before && !is_other && !matches!(&document.node, Node::Leaf(value) if value.is_null()) {
            found.push(Plugin { tree: Cow::Borrowed(document), inside: None });
        }
    }
    Ok(found)
}

fn search<'t>(tree: &'t Tree, found: &mut Vec<Plugin<'t>>) -> Result<(), (Location, String)> {
    // Istio's WasmPlugin.
    if let Some(plugin) = tree.get("pluginConfig").filter(|plugin| is_ours(plugin)) {
        found.push(Plugin { tree: Cow::Borrowed(plugin), inside: None });
    }
    // Envoy Gateway's EnvoyExtensionPolicy.
    if let Some(wasm) = tree.get("wasm").filter(|wasm| matches!(wasm.node, Node::List(_))) {
        let configs = wasm.children().filter_map(|plugin| plugin.get("config")).filter(|config| is_ours(config));
        found.extend(configs.map(|config| Plugin { tree: Cow::Borrowed(config), inside: None }));
    }
    // Envoy's PluginConfig: a message within an `Any`, a `Struct` or a `StringValue`.
    if let Some(value) =
        tree.get("configuration").filter(|any| any.get("@type").is_some()).and_then(|any| any.get("value"))
    {
        match value.text() {
            None if is_ours(value) => found.push(Plugin { tree: Cow::Borrowed(value), inside: None }),
            // Another plugin's text may be anything.
            Some(text) if text.contains("\"rules\"") || text.contains("\"service\"") => {
                // Only JSON is read by the filter, which is YAML too.
                serde_json::from_str::<serde::de::IgnoredAny>(text)
                    .map_err(|error| (value.place, format!("the configuration is not JSON: {error}")))?;
                let inner = tree::parse(text).map_err(|(_, reason)| (value.place, reason))?;
                let inside = Some(value.place);
                found.extend(inner.into_iter().map(|tree| Plugin { tree: Cow::Owned(tree), inside }));
            }
            _ => {}
        }
    }
    tree.children().try_for_each(|child| search(child, found))
}

/// Other plugins have other fields.
fn is_ours(plugin: &Tree) -> bool {
    plugin.get("rules").is_some() || plugin.get("service").is_some()
}
