//! House rules that no compiler checks.

mod boundaries;
mod doc_paths;
mod length;
mod module_docs;
mod sleeps;
mod tree;

use std::path::Path;

use anyhow::{Result, bail};

use self::tree::Tree;

/// Checks the files under `root`; every finding is printed.
pub(crate) fn check(root: &Path) -> Result<()> {
    let tree = Tree::read(root)?;
    let findings: Vec<String> = [boundaries::check, doc_paths::check, length::check, module_docs::check, sleeps::check]
        .into_iter()
        .flat_map(|rule| rule(&tree))
        .collect();
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("tidy: {count} findings"),
    }
}
