//! `.tools/`: what the commands install. Each step is done once and kept.

use std::{
    fs::{self, File, TryLockError},
    os::unix,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::progress::Step;

/// The folder, locked: two commands at once would install the same thing twice, over each other.
pub(crate) struct ToolsDir {
    path: PathBuf,
    _lock: File,
}

impl ToolsDir {
    pub(crate) fn open(root: &Path) -> Result<Self> {
        let path = root.join(".tools");
        for folder in ["bin", "logs", "stamps"] {
            fs::create_dir_all(path.join(folder)).with_context(|| format!("creating {}", path.display()))?;
        }
        let lock = File::create(path.join("lock")).context("creating .tools/lock")?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!("setup: waiting for another `cargo xtask` ...");
                lock.lock().context("locking .tools/lock")?;
            }
            Err(TryLockError::Error(error)) => return Err(error).context("locking .tools/lock"),
        }
        Ok(Self { path, _lock: lock })
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where a step's output goes.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.path.join("logs").join(format!("{name}.log"))
    }

    /// Makes `product` unless it is there and was made as `version`.
    pub(crate) fn once(
        &self,
        name: &str,
        version: &str,
        product: &Path,
        make: impl FnOnce(&Step) -> Result<()>,
    ) -> Result<()> {
        let stamp = self.path.join("stamps").join(name);
        if product.exists() && fs::read_to_string(&stamp).is_ok_and(|made| made == version) {
            return Ok(());
        }
        let step = Step::begin(format!("{name} {version}").trim_end());
        make(&step).with_context(|| format!("setting up {name}"))?;
        ensure!(product.exists(), "setting up {name}: {} was not made", product.display());
        fs::write(&stamp, version).with_context(|| format!("writing {}", stamp.display()))?;
        step.end();
        Ok(())
    }

    /// Gives the program `name` in `.tools/bin`, as a link to `target`.
    pub(crate) fn link(&self, name: &str, target: &Path) -> Result<PathBuf> {
        let link = self.path.join("bin").join(name);
        if fs::read_link(&link).ok().as_deref() != Some(target) {
            if link.symlink_metadata().is_ok() {
                fs::remove_file(&link).with_context(|| format!("replacing {}", link.display()))?;
            }
            unix::fs::symlink(target, &link).with_context(|| format!("linking {}", link.display()))?;
        }
        Ok(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_done_once_for_each_version_and_again_when_its_product_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let tools = ToolsDir::open(root.path()).unwrap();
        let product = tools.join("product");
        let check = |version: &str, expected: bool| {
            let mut made = false;
            tools
                .once("thing", version, &product, |_| {
                    made = true;
                    Ok(fs::write(&product, version)?)
                })
                .unwrap();
            assert_eq!(made, expected);
        };
        check("1", true);
        check("1", false);
        check("2", true);
        fs::remove_file(&product).unwrap();
        check("2", true);
        check("2", false);
    }

    #[test]
    fn a_step_that_makes_nothing_fails_and_is_tried_again() {
        let root = tempfile::tempdir().unwrap();
        let tools = ToolsDir::open(root.path()).unwrap();
        let product = tools.join("product");
        assert!(tools.once("thing", "1", &product, |_| Ok(())).is_err());
        tools.once("thing", "1", &product, |_| Ok(fs::write(&product, "")?)).unwrap();
        assert!(product.exists());
    }

    #[test]
    fn a_link_follows_its_target() {
        let root = tempfile::tempdir().unwrap();
        let tools = ToolsDir::open(root.path()).unwrap();
        for target in ["/one", "/two", "/two"] {
            let link = tools.link("program", Path::new(target)).unwrap();
            assert_eq!(fs::read_link(link).unwrap(), Path::new(target));
        }
    }
}
