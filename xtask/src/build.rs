//! The filter as wasm, and where tests and the demo find what was built.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{process, setup::WasmToolchain, workspace::Workspace};

const PROFILE: &str = "release-filter";
const FILE: &str = "sluicegate_filter.wasm";

/// Builds the filter and gives its path, `target/sluicegate_filter.wasm`, which `envoy/envoy.yaml` names.
pub(crate) fn filter(workspace: &Workspace, toolchain: &WasmToolchain) -> Result<PathBuf> {
    process::run(toolchain.cargo(workspace, "build").args(["--package", "sluicegate-filter", "--profile", PROFILE]))?;
    let built = toolchain.target_dir(workspace).join(WasmToolchain::TARGET).join(PROFILE).join(FILE);
    let copy = workspace.target.join(FILE);
    let bytes = fs::copy(&built, &copy).with_context(|| format!("copying {}", built.display()))?;
    eprintln!("{}: {} kB", workspace.relative(&copy).display(), bytes.div_ceil(1000));
    Ok(copy)
}

/// Tells `command` where the filter and the service are.
pub(crate) fn apply(workspace: &Workspace, filter: &Path, command: &mut Command) {
    command.env("SLUICEGATE_FILTER_WASM", filter);
    apply_service(workspace, command);
}

/// Tells `command` where the service is.
pub(crate) fn apply_service(workspace: &Workspace, command: &mut Command) {
    command.env("SLUICEGATE_BIN", workspace.program("sluicegate"));
}
