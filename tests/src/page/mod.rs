//! The pages of the documentation as something to run: their fenced blocks, in order.
//!
//! `CONTRIBUTING.md` says by what rules a block is run, compared, written or left to others.

mod block;
mod parse;
mod script;
mod shown;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result};

pub use block::{Block, Place, Role};
pub use shown::{Shown, same_output};

use crate::repository;

/// One Markdown file.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its path from the root of the repository.
    pub path: PathBuf,
    /// Its fenced blocks, in order.
    pub blocks: Vec<Block>,
}

impl Page {
    /// The page at this path from the root of the repository.
    ///
    /// # Errors
    /// When it can't be read, or a block is covered by no rule; the message names the line.
    pub fn read(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let text =
            fs::read_to_string(repository("").join(&path)).with_context(|| format!("can't read {}", path.display()))?;
        Self::parse(path, &text)
    }

    /// A page with this text.
    ///
    /// # Errors
    /// When a block is covered by no rule.
    pub fn parse(path: impl Into<PathBuf>, text: &str) -> Result<Self> {
        let path = path.into();
        let blocks = parse::blocks(text).map_err(|fault| fault.context(path.display().to_string()))?;
        Ok(Self { path, blocks })
    }

    /// The paths of all pages in `docs/`, sorted.
    ///
    /// # Errors
    /// When the folder can't be read.
    pub fn paths() -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(repository("docs"))?.collect::<Result<Vec<_>, _>>()?;
        let names = entries.iter().map(|entry| Path::new("docs").join(entry.file_name()));
        let mut paths: Vec<_> = names.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
        paths.sort();
        Ok(paths)
    }

    /// The blocks that run in this place, in order.
    pub fn blocks_in(&self, place: &Place) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| block.place == *place)
    }

    /// Runs the blocks of one place, in order, in one bash that `shell` starts. The bash reads the script that is added as
    /// the last argument. `folder` is for the script and what it notes.
    ///
    /// # Errors
    /// When a command fails, doesn't show what the page shows, or takes so long that the page isn't done within two
    /// minutes. The message names the line and has the output.
    pub async fn run(&self, place: &Place, shell: Command, folder: &Path) -> Result<()> {
        let blocks: Vec<_> = self.blocks_in(place).collect();
        script::run(&self.path, &blocks, shell, folder).await
    }
}
