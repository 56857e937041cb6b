//! A listener in a file of its own, which Envoy follows.

use std::{fs, path::Path};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Moves the listeners of `config` to a file in `directory`. The file takes the place of an earlier one at once, so that
/// Envoy never reads half of it.
pub(super) fn move_out(config: &mut Value, directory: &Path) -> Result<()> {
    let listeners = config["static_resources"]["listeners"].take();
    let mut resources = listeners.as_array().context("listeners is not a list")?.clone();
    for listener in &mut resources {
        listener["@type"] = "type.googleapis.com/envoy.config.listener.v3.Listener".into();
    }
    let (path, new) = (directory.join("listeners.json"), directory.join("listeners.new"));
    fs::write(&new, json!({ "resources": resources }).to_string())?;
    fs::rename(&new, &path)?;
    config["node"] = json!({ "id": "test", "cluster": "test" });
    config["dynamic_resources"]["lds_config"] =
        json!({ "resource_api_version": "V3", "path_config_source": { "path": path } });
    Ok(())
}
