//! Load generators, for measurements alone.

use std::fs;

use anyhow::{Context as _, Result};

use super::apt;
use crate::{process, tools_dir::ToolsDir, workspace::Workspace};

/// Keeps a steady rate, and counts a wait from when the request was due.
const OHA: &str = "1.16.0";

/// wrk, h2load and redis-benchmark from `PATH` or Debian's packages; oha compiled.
pub(super) fn find(workspace: &Workspace, tools: &ToolsDir) -> Result<()> {
    for (program, package) in [("wrk", "wrk"), ("h2load", "nghttp2-client"), ("redis-benchmark", "redis-tools")] {
        apt::ensure(program, package, tools)?;
    }
    let (root, build) = (tools.join("oha"), tools.join("build"));
    let program = root.join("bin/oha");
    tools.once("oha", OHA, &program, |step| {
        // By its own lock file: newer libraries want a newer compiler. It doesn't compile without TLS.
        let mut install = workspace.cargo("install");
        install.args(["oha", "--locked", "--version", OHA]);
        install.arg("--root").arg(&root).arg("--target-dir").arg(&build);
        process::run_logged(step, &tools.log("oha"), &mut install)?;
        fs::remove_dir_all(&build).context("removing .tools/build")
    })?;
    tools.link("oha", &program).map(drop)
}
