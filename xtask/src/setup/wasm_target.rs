//! A compiler for `wasm32-unknown-unknown`: rustup's target, or Debian's newest rustc where rustup's server is out of
//! reach.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};

use super::debian_rust::{self, DebianRust};
use crate::{process, progress::Step, tools_dir::ToolsDir, workspace::Workspace};

/// `debian` forces the fallback, so that it can be tried where rustup works.
const CHOICE: &str = "SLUICEGATE_WASM_TOOLCHAIN";

/// What compiles the filter.
pub(crate) enum WasmToolchain {
    /// The active toolchain, which has the target's standard library.
    Active,
    /// Debian's compiler, unpacked, driven by the active cargo; the standard library is compiled along.
    Debian(DebianRust),
}

impl WasmToolchain {
    pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

    /// The target of the active toolchain, else what was unpacked before, else rustup's, else Debian's.
    pub(super) fn find(tools: &ToolsDir) -> Result<Self> {
        match env::var(CHOICE).as_deref() {
            Ok("debian") => return debian_rust::find(tools).map(Self::Debian),
            Ok("" | "rustup") | Err(env::VarError::NotPresent) => {}
            Ok(other) => bail!("{CHOICE} is {other:?}: it may be rustup or debian"),
            Err(error) => bail!("{CHOICE}: {error}"),
        }
        if is_installed()? {
            return Ok(Self::Active);
        }
        // Before rustup, which takes a while to find out that it can't reach its server.
        if debian_rust::is_unpacked(tools) {
            return debian_rust::find(tools).map(Self::Debian);
        }
        let step = Step::begin(Self::TARGET);
        let mut rustup = Command::new("rustup");
        match process::run_logged(&step, &tools.log("rustup"), rustup.args(["target", "add", Self::TARGET])) {
            Ok(()) if is_installed()? => {
                step.end();
                Ok(Self::Active)
            }
            added => {
                let reason =
                    added.err().map_or_else(|| "not for the active toolchain".to_owned(), |e| format!("{e:#}"));
                eprintln!("setup: rustup can't add {}: {reason}; trying Debian's compiler", Self::TARGET);
                debian_rust::find(tools)
                    .map(Self::Debian)
                    .with_context(|| format!("run `rustup target add {}` and then this again", Self::TARGET))
            }
        }
    }

    /// `cargo SUBCOMMAND` for this target.
    pub(crate) fn cargo(&self, workspace: &Workspace, subcommand: &str) -> Command {
        let mut command = match self {
            Self::Debian(rust) if subcommand == "clippy" => rust.clippy(workspace),
            _ => workspace.cargo(subcommand),
        };
        command.args(["--target", Self::TARGET]);
        if let Self::Debian(rust) = self {
            rust.apply(&mut command, subcommand);
            command.arg("--target-dir").arg(self.target_dir(workspace));
        }
        command
    }

    /// Where [`Self::cargo`] builds: a folder of its own for another compiler, so that neither invalidates the other's
    /// work.
    pub(crate) fn target_dir(&self, workspace: &Workspace) -> PathBuf {
        match self {
            Self::Active => workspace.target.clone(),
            Self::Debian(_) => workspace.target.join("debian"),
        }
    }
}

fn is_installed() -> Result<bool> {
    let folder =
        process::output(Command::new("rustc").args(["--print", "target-libdir", "--target", WasmToolchain::TARGET]))?;
    Ok(Path::new(folder.trim()).is_dir())
}
