//! redis-server, from `PATH` or Debian's package. Tests start their own, each on a free port; installing must not start
//! one.

use std::{
    fs,
    io::ErrorKind,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};

use super::apt;
use crate::{process, tools_dir::ToolsDir};

pub(super) fn find(tools: &ToolsDir) -> Result<PathBuf> {
    if let Some(path) = process::find("redis-server") {
        return Ok(path);
    }
    let _no_service = NoServices::forbid()?;
    apt::ensure("redis-server", "redis-server", tools)
}

/// While it lives, packages that are installed start no service: Debian's own way, a `policy-rc.d` that answers 101.
struct NoServices {
    ours: bool,
}

impl NoServices {
    const POLICY: &str = "/usr/sbin/policy-rc.d";

    fn forbid() -> Result<Self> {
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
