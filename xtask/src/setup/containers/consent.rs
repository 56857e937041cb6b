//! Asking before something is installed that changes more than a folder.

use std::{
    env,
    io::{self, IsTerminal as _, Write as _},
};

use anyhow::{Context as _, Result, bail};

/// Asks on the terminal, unless this is CI. Without a terminal there is nobody to ask, which is an error.
pub(super) fn ask(what: &str) -> Result<()> {
    if env::var_os("CI").is_some_and(|ci| !ci.is_empty()) {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        bail!("{what} is needed, and there is no terminal to ask at: set CI=true to agree, or start a Docker engine");
    }
    eprint!("setup: {what} is needed. Go ahead? [y/N] ");
    io::stderr().flush().context("asking")?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("reading the answer")?;
    if !matches!(answer.trim(), "y" | "Y" | "yes") {
        bail!("nothing was installed");
    }
    Ok(())
}
