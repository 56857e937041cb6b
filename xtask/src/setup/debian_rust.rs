//! Debian's newest Rust compiler, unpacked into `.tools/`: it can't be installed beside others, and needs no installing.

use std::{
    env::{self, consts::ARCH},
    path::PathBuf,
    process::Command,
};

use anyhow::{Context as _, Result, ensure};

use super::apt;
use crate::{process, tools_dir::ToolsDir, workspace::Workspace};

const NAME: &str = "debian-rust";
/// The compiler, the source of its standard library, and its clippy.
const PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "rust-web-clippy"];
/// Dependencies that a machine with a linker has, and that must come from the machine itself.
const OF_THE_MACHINE: [&str; 6] = ["gcc", "binutils", "libc6", "libgcc", "libstdc++", "dpkg"];

/// An unpacked compiler and the linker of the active toolchain.
pub(crate) struct DebianRust {
    root: PathBuf,
    linker: PathBuf,
}

impl DebianRust {
    /// Makes `cargo SUBCOMMAND` use this compiler and compile the standard library too.
    pub(super) fn apply(&self, cargo: &mut Command, subcommand: &str) {
        let build_std =
            if subcommand == "test" { "build-std=std,panic_abort,test" } else { "build-std=std,panic_abort" };
        cargo
            .args(["-Z", build_std])
            .env("RUSTC", self.root.join("usr/bin/rustc"))
            // Allows -Z with a stable compiler.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &self.linker);
        self.add_libraries(cargo);
    }

    /// `cargo clippy` of this compiler: each clippy works with its own compiler only.
    pub(super) fn clippy(&self, workspace: &Workspace) -> Command {
        let mut command = Command::new(self.root.join("usr/bin/cargo-clippy"));
        command.current_dir(&workspace.root).arg("clippy");
        command
    }

    fn add_libraries(&self, command: &mut Command) {
        let folders = ["usr/lib", "lib"].map(|lib| self.root.join(lib).join(format!("{ARCH}-linux-gnu")));
        let inherited = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let all = env::join_paths(folders.into_iter().chain(env::split_paths(&inherited)));
        command.env("LD_LIBRARY_PATH", all.unwrap_or(inherited));
    }
}

/// Whether [`find`] has nothing left to do.
pub(super) fn is_unpacked(tools: &ToolsDir) -> bool {
    tools.join(NAME).join("usr/bin/rustc").exists()
}

/// Downloads and unpacks it unless it is there.
pub(super) fn find(tools: &ToolsDir) -> Result<DebianRust> {
    let rust = DebianRust { root: tools.join(NAME), linker: linker()? };
    // No version: Debian's security archive keeps only the newest.
    tools.once(NAME, "", &rust.root.join("usr/bin/rustc"), |step| {
        ensure!(process::find("apt-get").is_some(), "there is no apt-get to download Debian's Rust compiler with");
        apt::update(step, tools);
        let packages = apt::closure(&PACKAGES, |name| OF_THE_MACHINE.iter().any(|own| name.starts_with(own)))?;
        apt::unpack(&packages, NAME, step, tools)?;
        let mut rustc = Command::new(rust.root.join("usr/bin/rustc"));
        rust.add_libraries(&mut rustc);
        process::output(rustc.arg("--version")).context("the unpacked compiler doesn't run").map(drop)
    })?;
    Ok(rust)
}

/// rust-lld of the active toolchain; Debian has it in a package that depends on another LLVM.
fn linker() -> Result<PathBuf> {
    let sysroot = PathBuf::from(process::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    let linker = sysroot.join(format!("lib/rustlib/{ARCH}-unknown-linux-gnu/bin/rust-lld"));
    ensure!(linker.exists(), "the active Rust toolchain has no rust-lld: install Rust with rustup");
    Ok(linker)
}
