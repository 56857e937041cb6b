//! The filter as wasm, and where tests and the demo find what was built.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

use crate::{process, setup::WasmToolchain, workspace::Workspace};

const PROFILE: &str = "release-filter";
const FILE: &str = "sluicegate_filter.wasm";

/// Builds the filter and gives its path, `target/sluicegate_filter.wasm`, which `envoy/envoy.yaml` names.
pub(crate) fn filter(workspace: &Workspace, toolchain: &WasmToolchain) -> Result<PathBuf> {
    let mut cargo = toolchain.cargo(workspace, "build");
    cargo.args(["--package", "sluicegate-filter", "--profile", PROFILE]);
    process::run(cargo.env("CARGO_ENCODED_RUSTFLAGS", without_paths(workspace)))?;
    let built = toolchain.target_dir(workspace).join(WasmToolchain::TARGET).join(PROFILE).join(FILE);
    let copy = workspace.target.join(FILE);
    let bytes = fs::copy(&built, &copy).with_context(|| format!("copying {}", built.display()))?;
    eprintln!("{}: {} kB", workspace.relative(&copy).display(), bytes.div_ceil(1000));
    Ok(copy)
}

/// Compiler flags, in the form that cargo takes whatever stands in the paths. Where a panic is in the source is part of
/// the filter: without the folders of this machine in it, each machine builds the same bytes, and fewer.
fn without_paths(workspace: &Workspace) -> String {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"))).unwrap_or_default();
    let prefixes = [workspace.root.clone(), home.join("registry/src")];
    prefixes.map(|prefix| format!("--remap-path-prefix={}=", prefix.display())).join("\x1f")
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
