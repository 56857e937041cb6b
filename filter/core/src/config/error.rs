//! What is wrong with a configuration, and where.

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// Nothing was given.
    #[error("the filter has no configuration: give it an object with service and rules")]
    Empty,
    /// Not JSON at all.
    #[error("the configuration is not JSON: {0}")]
    Syntax(String),
    /// A field is unknown, missing, or has a bad value.
    #[error("{path}: {problem}")]
    Field {
        /// Where: `rules[2].limits[0].policy`.
        path: String,
        /// What is wrong, and how to mend it.
        problem: String,
    },
}

impl ConfigError {
    pub(super) fn field(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { path: path.into(), problem: problem.into() }
    }
}
