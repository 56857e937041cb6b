//! What became of reading the configuration.

use std::time::SystemTime;

use crate::config::Version;

/// Which policies are in use, and what became of the last attempt to read others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadState {
    /// The version of the policies in use.
    pub version: Version,
    /// Since when these policies are in use.
    pub loaded_at: SystemTime,
    /// The last attempt to read the file; the start is the first.
    pub last_attempt: Attempt,
    /// When an attempt succeeded last.
    pub last_success_at: SystemTime,
    /// Attempts that succeeded, without the start.
    pub succeeded: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// The fields, other than policies, whose new values wait for a restart, such as `store.url`.
    pub needs_restart: Vec<String>,
}

/// What became of one attempt to read the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// What it says is in use.
    Ok {
        /// When.
        at: SystemTime,
    },
    /// Nothing changed.
    Failed {
        /// When.
        at: SystemTime,
        /// Each fault with its place, one a line.
        error: String,
    },
}

impl ReloadState {
    pub(super) fn started(version: Version, at: SystemTime) -> Self {
        Self {
            version,
            loaded_at: at,
            last_attempt: Attempt::Ok { at },
            last_success_at: at,
            succeeded: 0,
            failed: 0,
            needs_restart: Vec::new(),
        }
    }

    pub(super) fn succeed(&mut self, version: Version, needs_restart: Vec<String>, at: SystemTime) {
        if version != self.version {
            self.version = version;
            self.loaded_at = at;
        }
        self.last_attempt = Attempt::Ok { at };
        self.last_success_at = at;
        self.succeeded += 1;
        self.needs_restart = needs_restart;
    }

    pub(super) fn fail(&mut self, error: String, at: SystemTime) {
        self.last_attempt = Attempt::Failed { at, error };
        self.failed += 1;
    }
}
