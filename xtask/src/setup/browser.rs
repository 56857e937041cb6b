//! Chromium and its driver, from `PATH` or Debian's packages: the dashboard is tested in a real browser.

use std::{path::PathBuf, process::Command};

use anyhow::Result;

use super::apt;
use crate::tools_dir::ToolsDir;

pub(super) struct Browser {
    chromium: PathBuf,
    chromedriver: PathBuf,
}

pub(super) fn find(tools: &ToolsDir) -> Result<Browser> {
    Ok(Browser {
        chromium: apt::ensure("chromium", "chromium", tools)?,
        // Of the same source package, so of the same version.
        chromedriver: apt::ensure("chromedriver", "chromium-driver", tools)?,
    })
}

impl Browser {
    /// Tells `command` where they are.
    pub(super) fn apply(&self, command: &mut Command) {
        command.env("SLUICEGATE_CHROMIUM", &self.chromium).env("SLUICEGATE_CHROMEDRIVER", &self.chromedriver);
    }
}
