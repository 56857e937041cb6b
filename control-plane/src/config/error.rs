//! What is wrong with a configuration, and where.

use std::{fmt, io};

use serde_saphyr::Location;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigErrors {
    /// The file can't be read.
    #[error("{file}: can't be read: {error}")]
    Unreadable {
        /// The file's name.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The file says something that can't be done; one line for each fault, in the file's order.
    #[error("{}", Lines(.0))]
    Faults(Vec<ConfigError>),
}

/// One fault: where it is, which field it is about, and how to mend it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {reason}")]
pub struct ConfigError {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The field's path, what is wrong with it, and the fix. Never a secret.
    pub reason: String,
}

impl ConfigErrors {
    /// The first fault and how many more there are, in one line, as logs need it.
    #[must_use]
    pub fn summary(&self) -> String {
        match self {
            Self::Unreadable { .. } => self.to_string(),
            Self::Faults(faults) => {
                let more = match faults.len().saturating_sub(1) {
                    0 => String::new(),
                    more => format!(" (and {more} more: sluicegate check-config names them)"),
                };
                // A scalar's text, which may have several lines, can come back in a fault.
                let first = faults.first().map(|fault| fault.to_string().replace('\n', "\\n"));
                format!("{}{more}", first.unwrap_or_default())
            }
        }
    }

    pub(super) fn faults(file: &str, mut faults: Vec<Fault>) -> Self {
        faults.sort_by_key(|fault| (fault.line, fault.column));
        let error = |Fault { line, column, reason }| ConfigError { file: file.to_owned(), line, column, reason };
        Self::Faults(faults.into_iter().map(error).collect())
    }
}

/// A fault in a text that has no name yet.
#[derive(Debug)]
pub(super) struct Fault {
    line: u64,
    column: u64,
    reason: String,
}

impl Fault {
    /// A fault of the field at `path`; an empty path is the whole file.
    pub(super) fn new(location: Location, path: &str, reason: impl fmt::Display) -> Self {
        let reason = if path.is_empty() { reason.to_string() } else { format!("{path}: {reason}") };
        // An unknown location is line 0: the file as a whole.
        Self { line: location.line().max(1), column: location.column().max(1), reason }
    }
}

struct Lines<'a>(&'a [ConfigError]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.0.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(formatter, "{end}{error}")?;
        }
        Ok(())
    }
}
