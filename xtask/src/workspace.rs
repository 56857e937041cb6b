//! Where this workspace is, and cargo run in it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::process;

/// The checkout and its target directory, as absolute paths.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
}

impl Workspace {
    /// Asks cargo, since the target directory may be configured in many ways.
    pub(crate) fn load() -> Result<Self> {
        let metadata = process::output(cargo().current_dir(manifest_dir()).args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
        ]))?;
        let metadata: Value = serde_json::from_str(&metadata).context("reading `cargo metadata`")?;
        let path = |field: &str| {
            metadata[field].as_str().map(PathBuf::from).with_context(|| format!("`cargo metadata` gave no {field}"))
        };
        Ok(Self { root: path("workspace_root")?, target: path("target_directory")? })
    }

    /// `cargo SUBCOMMAND` in the root. Without `-p` it acts on the members that build natively.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root).arg(subcommand);
        command
    }

    /// A program of this workspace, as the dev profile builds it: its dependencies are shared with the tests', so that a
    /// fresh checkout compiles them once.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// The same as the release profile builds it, for measurements.
    pub(crate) fn released(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// `path` from the root, when it is inside, for messages.
    pub(crate) fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// As cargo says at run time: the path from compile time is another checkout's when two share a target directory.
fn manifest_dir() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}
