//! A machine of the page's own, as far as its commands can see: processes and a loopback network that nobody else has, so
//! that the ports that pages name are free, and programs in place of those that take long or need the Internet.

use std::{env, ffi::OsString, fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use anyhow::{Context as _, Result, ensure};
use sluicegate_tests::Tool;
use tempfile::TempDir;

/// Programs that stand in for others, each a script.
const STAND_INS: [(&str, &str); 5] = [
    ("cargo", include_str!("stand_ins/cargo")),
    ("curl", include_str!("stand_ins/curl")),
    ("envoy", include_str!("stand_ins/envoy")),
    ("python3", include_str!("stand_ins/python3")),
    ("sudo", include_str!("stand_ins/sudo")),
];

/// Namespaces for network and processes; everything in them ends with their first process.
const NAMESPACES: [&str; 5] = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// Brings loopback up and becomes bash.
const START: &str = "ip link set lo up && exec bash --noprofile --norc \"$@\"";

pub(crate) struct Machine {
    folder: TempDir,
}

impl Machine {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        for (name, text) in STAND_INS {
            let path = folder.path().join(name);
            fs::write(&path, text)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { folder })
    }

    /// For what the page's run notes, and the programs that stand in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A bash that begins in `folder`.
    pub(crate) fn shell(&self, folder: &Path) -> Result<Command> {
        let mut command = Command::new("unshare");
        command.args(privileges()?).args(NAMESPACES).args(["sh", "-c", START, "sh"]).current_dir(folder);
        let real = env::var_os("PATH").context("PATH is not set")?;
        let mut path = OsString::from(self.folder.path());
        path.push(":");
        path.push(&real);
        // Programs that stand in start the real ones by `REAL_PATH`.
        command.env("PATH", path).env("REAL_PATH", real).env("HOME", folder).env("TZ", "UTC");
        for tool in [Tool::Service, Tool::FilterWasm, Tool::Envoy] {
            command.env(tool.variable(), fs::canonicalize(tool.path()?)?);
        }
        Ok(command)
    }
}

/// What `unshare` needs besides: root makes namespaces as it is, others within a namespace of users.
fn privileges() -> Result<&'static [&'static str]> {
    let forms: [&[&str]; 2] = [&[], &["--user", "--map-root-user"]];
    let mut last = String::new();
    for form in forms {
        let output = Command::new("unshare")
            .args(form)
            .args(NAMESPACES)
            .args(["ip", "link", "set", "lo", "up"])
            .output()
            .context("unshare is not there: install util-linux")?;
        if output.status.success() {
            return Ok(form);
        }
        last = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    ensure!(
        false,
        "pages run in network and process namespaces of their own, which this machine refuses ({}): run as root, or \
         allow namespaces of users (sysctl kernel.unprivileged_userns_clone=1), and install iproute2",
        last.trim()
    );
    Ok(&[])
}
