//! What demo, test and lint need, made ready in `.tools/` or by apt.

mod apt;
mod browser;
mod clients;
mod containers;
mod debian_rust;
mod envoy;
mod kubectl;
mod load;
mod other_servers;
mod prometheus;
mod python;
mod redis_server;
mod wasm_target;
mod wasm_test_runner;

use std::{env, ffi::OsString, path::PathBuf, process::Command};

use anyhow::Result;

use self::{browser::Browser, clients::Clients, prometheus::Prometheus};
pub(crate) use self::{containers::Containers, wasm_target::WasmToolchain};
use crate::{tools_dir::ToolsDir, workspace::Workspace};

/// What the demo runs.
pub(crate) struct DemoTools {
    bin: PathBuf,
    envoy: PathBuf,
    pub(crate) wasm: WasmToolchain,
}

/// What the tests run: the demo's tools, clients in other languages, and Prometheus.
pub(crate) struct TestTools {
    pub(crate) demo: DemoTools,
    python: PathBuf,
    node_modules: PathBuf,
    prometheus: Prometheus,
    kubectl: PathBuf,
    pub(crate) wasm_test_runner: PathBuf,
    /// Some 300 MB, so only for runs that test everything.
    browser: Option<Browser>,
}

impl DemoTools {
    /// Tells `command` where the tools are.
    pub(crate) fn apply(&self, command: &mut Command) {
        let rest = env::var_os("PATH").unwrap_or_default();
        let mut path = OsString::from(&self.bin);
        path.push(":");
        path.push(rest);
        command.env("PATH", path).env("SLUICEGATE_ENVOY", &self.envoy);
    }
}

impl TestTools {
    /// Tells `command` where the tools are.
    pub(crate) fn apply(&self, command: &mut Command) {
        self.demo.apply(command);
        command.env("SLUICEGATE_PYTHON", &self.python).env("SLUICEGATE_NODE_MODULES", &self.node_modules);
        self.prometheus.apply(command);
        command.env("SLUICEGATE_KUBECTL", &self.kubectl);
        if let Some(browser) = &self.browser {
            browser.apply(command);
        }
    }
}

/// What the pages of the documentation run, and what runs them, each with its package.
const FOR_PAGES: [(&str, &str); 3] = [("curl", "curl"), ("ip", "iproute2"), ("unshare", "util-linux")];

/// All that any command needs.
pub(crate) fn everything(workspace: &Workspace) -> Result<TestTools> {
    for_lint(workspace)?;
    for_all_tests(workspace)
}

pub(crate) fn for_lint(workspace: &Workspace) -> Result<WasmToolchain> {
    apt::ensure("luacheck", "lua-check", &ToolsDir::open(&workspace.root)?)?;
    for_filter(workspace)
}

pub(crate) fn for_filter(workspace: &Workspace) -> Result<WasmToolchain> {
    WasmToolchain::find(&ToolsDir::open(&workspace.root)?)
}

pub(crate) fn for_demo(workspace: &Workspace) -> Result<DemoTools> {
    demo_tools(&ToolsDir::open(&workspace.root)?)
}

pub(crate) fn for_tests(workspace: &Workspace) -> Result<TestTools> {
    let tools = ToolsDir::open(&workspace.root)?;
    for (program, package) in FOR_PAGES {
        apt::ensure(program, package, &tools)?;
    }
    let demo = demo_tools(&tools)?;
    let clients = clients::find(&tools)?;
    let prometheus = prometheus::find(&tools)?;
    let kubectl = kubectl::find(&tools)?;
    let wasm_test_runner = wasm_test_runner::find(workspace, &tools)?;
    let Clients { python, node_modules } = clients;
    Ok(TestTools { demo, python, node_modules, prometheus, kubectl, wasm_test_runner, browser: None })
}

/// With what only the long run needs.
pub(crate) fn for_all_tests(workspace: &Workspace) -> Result<TestTools> {
    let tools = for_tests(workspace)?;
    let dir = ToolsDir::open(&workspace.root)?;
    let browser = browser::find(&dir)?;
    // Samples in the documents; some 200 MB.
    apt::ensure("javac", "default-jdk-headless", &dir)?;
    Ok(TestTools { browser: Some(browser), ..tools })
}

/// What the compose project needs: a filter to compare with, and an engine.
pub(crate) fn for_compose(workspace: &Workspace) -> Result<(WasmToolchain, Containers)> {
    let tools = ToolsDir::open(&workspace.root)?;
    Ok((WasmToolchain::find(&tools)?, Containers::find(workspace, &tools)?))
}

/// What the demo needs, and load generators.
pub(crate) fn for_bench(workspace: &Workspace) -> Result<DemoTools> {
    let tools = ToolsDir::open(&workspace.root)?;
    load::find(workspace, &tools)?;
    demo_tools(&tools)
}

/// Other servers that the scripts must run on, each with what to call the run.
pub(crate) fn other_servers(workspace: &Workspace) -> Result<[(&'static str, PathBuf); 2]> {
    other_servers::find(&ToolsDir::open(&workspace.root)?)
}

fn demo_tools(tools: &ToolsDir) -> Result<DemoTools> {
    redis_server::find(tools)?;
    let envoy = envoy::find(tools)?;
    Ok(DemoTools { bin: tools.join("bin"), envoy, wasm: WasmToolchain::find(tools)? })
}
