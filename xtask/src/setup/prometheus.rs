//! Prometheus and promtool, from `PATH` or Debian's package: alerts and dashboard are judged by what evaluates them. The
//! package is unpacked rather than installed, since installing it would start a daemon.

use std::{path::PathBuf, process::Command};

use anyhow::{Result, ensure};

use super::apt;
use crate::{process, tools_dir::ToolsDir};

const NAME: &str = "prometheus";

pub(super) struct Prometheus {
    server: PathBuf,
    promtool: PathBuf,
}

pub(super) fn find(tools: &ToolsDir) -> Result<Prometheus> {
    if let (Some(server), Some(promtool)) = (process::find("prometheus"), process::find("promtool")) {
        return Ok(Prometheus { server, promtool });
    }
    let programs = tools.join(NAME).join("usr/bin");
    let (server, promtool) = (programs.join("prometheus"), programs.join("promtool"));
    // No version: Debian's archive keeps only the newest.
    tools.once(NAME, "", &promtool, |step| {
        ensure!(
            process::find("apt-get").is_some(),
            "prometheus and promtool are not installed: put both on PATH and run this again"
        );
        apt::update(step, tools);
        // What it depends on is only for its pages, which nobody opens.
        apt::unpack(&[NAME.to_owned()], NAME, step, tools)?;
        process::output(Command::new(&promtool).arg("--version")).map(drop)
    })?;
    Ok(Prometheus { server, promtool })
}

impl Prometheus {
    /// Tells `command` where they are.
    pub(super) fn apply(&self, command: &mut Command) {
        command.env("SLUICEGATE_PROMETHEUS", &self.server).env("SLUICEGATE_PROMTOOL", &self.promtool);
    }
}
