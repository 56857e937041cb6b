//! The checks that need no test run: format, tidiness, Lua, clippy, docs.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};

use crate::{
    process,
    progress::Phases,
    setup::{self, WasmToolchain},
    tidy,
    workspace::Workspace,
};

/// Runs each check, also after one that failed, so that one run finds all there is to mend.
pub(crate) fn all(workspace: &Workspace, phases: &mut Phases) -> Result<()> {
    let wasm = phases.run("setup", || setup::for_lint(workspace))?;
    let checks: [(&str, &dyn Fn() -> Result<()>); 6] = [
        ("format", &|| process::run(workspace.cargo("fmt").args(["--all", "--check"]))),
        ("tidy", &|| tidy::check(&workspace.root)),
        ("luacheck", &|| luacheck(workspace)),
        ("clippy", &|| clippy(workspace)),
        ("clippy for wasm", &|| clippy_for_wasm(workspace, &wasm)),
        ("docs", &|| docs(workspace)),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        if let Err(error) = phases.run(name, check) {
            eprintln!("error: {error:#}");
            failed.push(name);
        }
    }
    ensure!(failed.is_empty(), "not passed: {}", failed.join(", "));
    Ok(())
}

fn luacheck(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root.join("lua");
    let mut scripts = Vec::new();
    for entry in fs::read_dir(&folder).context("reading lua/")? {
        let path = entry.context("reading lua/")?.path();
        if path.extension().is_some_and(|extension| extension == "lua") {
            scripts.push(workspace.relative(&path).to_owned());
        }
    }
    ensure!(!scripts.is_empty(), "lua/ has no scripts");
    scripts.sort();
    process::run(Command::new("luacheck").current_dir(&workspace.root).arg("--no-color").args(scripts))
}

fn clippy(workspace: &Workspace) -> Result<()> {
    process::run(workspace.cargo("clippy").args(["--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn clippy_for_wasm(workspace: &Workspace, toolchain: &WasmToolchain) -> Result<()> {
    let mut command = toolchain.cargo(workspace, "clippy");
    command.args(["--package", "sluicegate-filter", "--package", "sluicegate-filter-core", "--", "-D", "warnings"]);
    process::run(&mut command)
}

fn docs(workspace: &Workspace) -> Result<()> {
    process::run(workspace.cargo("doc").args(["--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}
