//! What a reader has who cloned the repository, without the sources that `cargo` alone reads.

use std::{fs, path::Path, sync::LazyLock};

use anyhow::{Context as _, Result};
use regex_lite::Regex;
use sluicegate_tests::{Page, Role, repository};
use tempfile::TempDir;

/// What isn't copied: what builds make, and the sources, since programs are built already.
const LEFT_OUT: [&str; 9] =
    ["bench", "control-plane", "docs", "filter", "node_modules", "target", "tests", "wire", "xtask"];

/// Deadlines that are right for a machine with nothing else to do, and would fail pages on a busy one.
static DEADLINES: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\btimeout: \d+ms\b").expect("a regular expression"));
const PATIENT: &str = "timeout: 500ms";

/// A copy in a folder of its own, with patient deadlines.
pub(crate) struct Checkout {
    folder: TempDir,
}

impl Checkout {
    pub(crate) fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        copy(&repository(""), folder.path(), &LEFT_OUT)?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The page with patient deadlines in the files that it writes.
    pub(crate) fn patient_page(&self, mut page: Page) -> Page {
        for block in &mut page.blocks {
            if let Role::File { text, .. } = &mut block.role {
                *text = patient(text);
            }
        }
        page
    }
}

fn patient(text: &str) -> String {
    DEADLINES.replace_all(text, PATIENT).into_owned()
}

fn copy(from: &Path, to: &Path, left_out: &[&str]) -> Result<()> {
    for entry in fs::read_dir(from).with_context(|| from.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name();
        let (path, target) = (entry.path(), to.join(&name));
        let name = name.to_string_lossy();
        if name.starts_with('.') || left_out.contains(&name.as_ref()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy(&path, &target, &["src", "target", "tests"])?;
        } else if path.extension().is_some_and(|end| end == "yaml") {
            fs::write(target, patient(&fs::read_to_string(path)?))?;
        } else {
            fs::copy(path, target)?;
        }
    }
    Ok(())
}
