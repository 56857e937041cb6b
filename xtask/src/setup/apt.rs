//! Programs that Debian's package manager installs, where it can.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::{process, progress::Step, tools_dir::ToolsDir};

/// The program, from `PATH` or else from Debian's `package`.
pub(super) fn ensure(program: &str, package: &str, tools: &ToolsDir) -> Result<PathBuf> {
    if let Some(path) = process::find(program) {
        return Ok(path);
    }
    install(package, &format!("{program} is not installed"), tools)?;
    process::find(program).with_context(|| format!("package {package} was installed, yet {program} is not on PATH"))
}

/// Installs `package`. Where that can't be done, the error says what is missing and what to install.
pub(super) fn install(package: &str, missing: &str, tools: &ToolsDir) -> Result<()> {
    if process::find("apt-get").is_none() || !is_root() {
        bail!("{missing}: install it (on Debian as root: `apt-get install {package}`) and run this again");
    }
    let step = Step::begin(package);
    update(&step, tools);
    process::run_logged(
        &step,
        &tools.log(package),
        Command::new("apt-get")
            .args(["install", "--yes", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120", package])
            .env("DEBIAN_FRONTEND", "noninteractive"),
    )
    .with_context(|| format!("{missing}, and apt could not install {package}"))?;
    step.end();
    Ok(())
}

/// Unpacks packages into `folder` without installing them, for those that would conflict with what is installed. Needs
/// no root.
pub(super) fn unpack(packages: &[String], folder: &str, step: &Step, tools: &ToolsDir) -> Result<()> {
    let archives = tools.join("debs");
    fs::create_dir_all(&archives).context("creating .tools/debs")?;
    let log = tools.log(folder);
    process::run_logged(step, &log, Command::new("apt-get").current_dir(&archives).arg("download").args(packages))?;
    for archive in fs::read_dir(&archives).context("reading .tools/debs")? {
        let archive = archive.context("reading .tools/debs")?.path();
        process::run_logged(step, &log, Command::new("dpkg").arg("-x").arg(archive).arg(tools.join(folder)))?;
    }
    fs::remove_dir_all(&archives).context("removing .tools/debs")
}

/// The packages that `roots` depend on, themselves included, except those that `leave_out` names.
pub(super) fn closure(roots: &[&str], leave_out: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut todo: Vec<String> = roots.iter().map(|&root| root.to_owned()).collect();
    let mut packages: Vec<String> = Vec::new();
    while let Some(package) = todo.pop() {
        if packages.contains(&package) || leave_out(&package) {
            continue;
        }
        let output = process::output(Command::new("apt-cache").args(["depends", "--important", &package]))?;
        todo.extend(dependencies(&output));
        packages.push(package);
    }
    ensure!(!packages.is_empty(), "no package to unpack");
    Ok(packages)
}

/// Brings the package lists up to date, once. A failure is left to the command that needs them.
pub(super) fn update(step: &Step, tools: &ToolsDir) {
    static DONE: OnceLock<()> = OnceLock::new();
    DONE.get_or_init(|| {
        if is_root()
            && let Err(error) =
                process::run_logged(step, &tools.log("apt-update"), Command::new("apt-get").arg("update"))
        {
            eprintln!("setup: {error:#}; going on with the package lists that are there");
        }
    });
}

/// While it lives, packages that are installed start no service: Debian's own way, a `policy-rc.d` that answers 101.
pub(super) struct NoServices {
    ours: bool,
}

impl NoServices {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    pub(super) fn forbid() -> Result<Self> {
        // Where there is one already (containers), the machine's owner has decided. Where it may not be written, apt
        // may not install either.
        match fs::File::create_new(Self::POLICY) {
            Ok(_) => {
                let policy = Self { ours: true };
                fs::write(Self::POLICY, "#!/bin/sh\nexit 101\n").context("writing policy-rc.d")?;
                fs::set_permissions(Path::new(Self::POLICY), fs::Permissions::from_mode(0o755))
                    .context("making policy-rc.d executable")?;
                Ok(policy)
            }
            Err(error) => match error.kind() {
                ErrorKind::AlreadyExists | ErrorKind::PermissionDenied | ErrorKind::NotFound => {
                    Ok(Self { ours: false })
                }
                _ => Err(error).context("creating policy-rc.d"),
            },
        }
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if self.ours
            && let Err(error) = fs::remove_file(Self::POLICY)
        {
            eprintln!("setup: remove {}, which keeps services from starting: {error}", Self::POLICY);
        }
    }
}

fn is_root() -> bool {
    process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// The real packages in the output of `apt-cache depends`; names in angle brackets are virtual.
fn dependencies(output: &str) -> impl Iterator<Item = String> {
    output
        .lines()
        .filter_map(|line| line.trim_start_matches([' ', '|']).split_once("epends: "))
        .map(|(_, package)| package.trim())
        .filter(|package| !package.starts_with('<'))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_apt_cache() {
        let output = "\
rustc-web
  PreDepends: dpkg
  Depends: libc6
 |Depends: gcc
  Depends: <libc-dev>
    libc6-dev
  Conflicts: rustc
  Recommends: cargo-web
";
        assert_eq!(dependencies(output).collect::<Vec<_>>(), ["dpkg", "libc6", "gcc"]);
    }
}
