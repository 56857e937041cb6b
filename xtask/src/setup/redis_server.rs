//! redis-server, from `PATH` or Debian's package. Tests start their own, each on a free port; installing must not start
//! one.

use std::path::PathBuf;

use anyhow::Result;

use super::apt::{self, NoServices};
use crate::{process, tools_dir::ToolsDir};

pub(super) fn find(tools: &ToolsDir) -> Result<PathBuf> {
    if let Some(path) = process::find("redis-server") {
        return Ok(path);
    }
    let _no_service = NoServices::forbid()?;
    apt::ensure("redis-server", "redis-server", tools)
}
