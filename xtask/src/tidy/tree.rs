//! The files of the repository.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result};

/// Folders that hold what was built or installed, not what was written.
const NOT_OURS: [&str; 4] = [".git", ".tools", "node_modules", "target"];

/// Paths from the root, with `/`, and the text of each file; nothing for one that is not text.
#[derive(Default)]
pub(super) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        tree.add(root, "")?;
        Ok(tree)
    }

    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        Self { files: files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect() }
    }

    /// The files whose names end with one of `extensions`.
    pub(super) fn with_extension(&self, extensions: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .filter(|(path, _)| extensions.iter().any(|extension| path.ends_with(&format!(".{extension}"))))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    pub(super) fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file or a folder with files in it, seen from the root or from any folder.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = format!("/{}/", path.trim_end_matches('/'));
        self.files.keys().any(|file| format!("/{file}/").contains(&path))
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> Result<()> {
        for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
            let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.path().is_dir() {
                if !NOT_OURS.contains(&name.as_str()) {
                    self.add(&entry.path(), &format!("{path}/"))?;
                }
            } else {
                let bytes = fs::read(entry.path()).with_context(|| format!("reading {path}"))?;
                self.files.insert(path, String::from_utf8(bytes).unwrap_or_default());
            }
        }
        Ok(())
    }
}
