//! Where the programs under test are.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

/// Something that a test runs or reads and that `cargo xtask` builds or installs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// The service, `sluicegate`.
    Service,
    /// The filter, as wasm.
    FilterWasm,
    /// Envoy.
    Envoy,
    /// A Python with redis-py and schemathesis.
    Python,
    /// A browser, which the dashboard's tests alone need.
    Chromium,
    /// What drives it.
    Chromedriver,
    /// Prometheus.
    Prometheus,
    /// What checks its files.
    Promtool,
    /// A `node_modules` folder with ioredis.
    NodeModules,
    /// The client of Kubernetes, whose `kustomize` needs no cluster.
    Kubectl,
}

impl Tool {
    /// The path that the tool's environment variable names.
    ///
    /// # Errors
    /// When the variable is not set or nothing is at its path; the message is the fix.
    pub fn path(self) -> Result<PathBuf> {
        let variable = self.variable();
        let command = match self {
            Self::Chromium | Self::Chromedriver => "cargo xtask test --all",
            _ => "cargo xtask test` (or `cargo xtask demo",
        };
        let path = env::var_os(variable)
            .map(PathBuf::from)
            .with_context(|| format!("{variable} is not set: run `{command}`, which sets it"))?;
        ensure!(
            path.exists(),
            "{variable} names {}, which does not exist: run `{command}`, which makes it",
            path.display()
        );
        Ok(path)
    }

    /// The environment variable that names its path.
    #[must_use]
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Service => "SLUICEGATE_BIN",
            Self::FilterWasm => "SLUICEGATE_FILTER_WASM",
            Self::Envoy => "SLUICEGATE_ENVOY",
            Self::Python => "SLUICEGATE_PYTHON",
            Self::Chromium => "SLUICEGATE_CHROMIUM",
            Self::Chromedriver => "SLUICEGATE_CHROMEDRIVER",
            Self::Prometheus => "SLUICEGATE_PROMETHEUS",
            Self::Promtool => "SLUICEGATE_PROMTOOL",
            Self::NodeModules => "SLUICEGATE_NODE_MODULES",
            Self::Kubectl => "SLUICEGATE_KUBECTL",
        }
    }
}

/// A file of this repository, by its path from the root.
#[must_use]
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
