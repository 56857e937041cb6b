//! One fenced block.

use super::Shown;

/// A fenced block of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The line of the page on which the fence opens, from 1.
    pub line: usize,
    /// Where it can run.
    pub place: Place,
    /// What it is.
    pub role: Role,
}

/// Where a block can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On this machine, by the test of the page.
    #[default]
    Here,
    /// Beside the containers of the compose file: `<!-- docker -->`.
    Docker,
    /// In a cluster of this kind: `<!-- cluster: kubernetes -->`.
    Cluster(String),
}

/// What a block is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Commands that must succeed: `sh`, or a comment that begins with `<!-- run`.
    Commands(String),
    /// Commands with what they show: `console`.
    Console(Vec<Shown>),
    /// The text of a file that commands use: `<!-- file: NAME -->`.
    File {
        /// Its path, from where the page's commands begin.
        name: String,
        /// What it holds.
        text: String,
    },
    /// Something to read.
    Text {
        /// The language of the fence.
        language: String,
        /// What it holds.
        text: String,
    },
}
