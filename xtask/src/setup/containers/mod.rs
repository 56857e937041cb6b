//! Docker, for the compose project: an engine, its command line, and the images that the project starts from.

mod command_line;
mod consent;
mod engine;
mod stand_ins;

use std::{env, ffi::OsString, path::PathBuf, process::Command};

use anyhow::Result;

use self::{command_line::CommandLine, engine::Engine};
use crate::{process, tools_dir::ToolsDir, workspace::Workspace};

/// An engine that has all images that the project starts from. Dropped, one that was started for this ends.
pub(crate) struct Containers {
    bin: PathBuf,
    command_line: CommandLine,
    engine: Engine,
}

impl Containers {
    /// Finds an engine, or installs and starts one; the images are pulled, or stood in for where the engine is ours.
    pub(super) fn find(workspace: &Workspace, tools: &ToolsDir) -> Result<Self> {
        let engine = Engine::find(tools)?;
        let command_line = CommandLine::find(tools)?;
        let containers = Self { bin: tools.join("bin"), command_line, engine };
        containers.remove_leftovers()?;
        stand_ins::ensure_all(&containers, workspace, tools)?;
        Ok(containers)
    }

    /// Tells `command` which engine to talk to, and with what.
    pub(crate) fn apply(&self, command: &mut Command) {
        let mut path = OsString::from(&self.bin);
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path).env("SLUICEGATE_COMPOSE", self.command_line.compose());
        // The builder that the Dockerfiles are written for; newer command lines have no other.
        command.env("DOCKER_BUILDKIT", "1").env("COMPOSE_DOCKER_CLI_BUILD", "1");
        self.engine.apply(command);
    }

    /// What a run left that was killed: our engine would start it again.
    fn remove_leftovers(&self) -> Result<()> {
        if !self.engine.is_ours() {
            return Ok(());
        }
        let left = process::output(&mut self.docker(&["ps", "--all", "--quiet"]))?;
        let left: Vec<_> = left.lines().collect();
        if !left.is_empty() {
            process::output(&mut self.docker(&[&["rm", "--force"], left.as_slice()].concat()))?;
        }
        process::output(&mut self.docker(&["network", "prune", "--force"])).map(drop)
    }

    /// `docker ARGUMENTS`.
    fn docker(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.command_line.docker());
        self.apply(command.args(arguments));
        command
    }
}
