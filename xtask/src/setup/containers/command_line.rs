//! `docker` and compose.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result};

use crate::{process, setup::apt, tools_dir::ToolsDir};

/// A `docker` that can build, and compose.
pub(super) struct CommandLine {
    docker: PathBuf,
    compose: &'static str,
}

impl CommandLine {
    /// The first of those on `PATH` and Debian's that can build.
    pub(super) fn find(tools: &ToolsDir) -> Result<Self> {
        let candidates = process::find_all("docker").into_iter().chain([PathBuf::from("/usr/bin/docker")]);
        let docker = candidates
            .filter(|docker| docker.is_file())
            .find(|docker| builds(docker))
            .context("no `docker` here can build: install its buildx plugin, or on Debian docker.io")?;
        // In front of all others on the tests' PATH, since docker-compose looks for it there.
        let docker = tools.link("docker", &docker)?;
        let compose = if succeeds(Command::new(&docker).args(["compose", "version"])) {
            "docker compose"
        } else {
            apt::ensure("docker-compose", "docker-compose", tools)?;
            "docker-compose"
        };
        Ok(Self { docker, compose })
    }

    pub(super) fn docker(&self) -> &Path {
        &self.docker
    }

    /// The words with which compose is called.
    pub(super) const fn compose(&self) -> &'static str {
        self.compose
    }
}

/// Whether BuildKit can be asked to build: by the plugin buildx, or as until 22 without.
fn builds(docker: &Path) -> bool {
    if succeeds(Command::new(docker).args(["buildx", "version"])) {
        return true;
    }
    let version = process::output(Command::new(docker).arg("--version")).unwrap_or_default();
    major(&version).is_some_and(|major| major < 23)
}

/// 20 of `Docker version 20.10.24+dfsg1, build 297e128`.
fn major(version: &str) -> Option<u32> {
    version.split_once("version ")?.1.split('.').next()?.parse().ok()
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read() {
        assert_eq!(major("Docker version 20.10.24+dfsg1, build 297e128\n"), Some(20));
        assert_eq!(major("Docker version 28.2.2, build e6534b4"), Some(28));
        assert_eq!(major("podman"), None);
    }
}
