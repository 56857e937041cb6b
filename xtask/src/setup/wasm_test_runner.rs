//! wasm-bindgen-test-runner, which runs tests as wasm in Node.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result};

use crate::{lock_file, process, tools_dir::ToolsDir, workspace::Workspace};

const PROGRAM: &str = "wasm-bindgen-test-runner";

/// Compiles it unless it is there in the version that `Cargo.lock` has of wasm-bindgen: the two must be equal.
pub(super) fn find(workspace: &Workspace, tools: &ToolsDir) -> Result<PathBuf> {
    let lock_file = fs::read_to_string(workspace.root.join("Cargo.lock")).context("reading Cargo.lock")?;
    let version = lock_file::version(&lock_file, "wasm-bindgen").context("Cargo.lock has no single wasm-bindgen")?;
    let root = tools.join("wasm-bindgen");
    let program = root.join("bin").join(PROGRAM);
    let build = tools.join("build");
    tools.once(PROGRAM, version, &program, |step| {
        // One program of the package, without optimization, TLS and debug info, compiles in a third of the time. Not
        // --locked: the package's lock file names a yanked release.
        let mut install = workspace.cargo("install");
        install.args(["wasm-bindgen-cli", "--version", version, "--bin", PROGRAM]);
        install.args(["--no-default-features", "--debug"]).env("CARGO_PROFILE_DEV_DEBUG", "0");
        install.arg("--root").arg(&root).arg("--target-dir").arg(&build);
        process::run_logged(step, &tools.log(PROGRAM), &mut install)?;
        fs::remove_dir_all(&build).context("removing .tools/build")
    })?;
    Ok(program)
}
