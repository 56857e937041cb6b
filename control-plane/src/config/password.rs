//! Passwords: what the service presents to the store.

use super::{FileError, Secret, files};

/// A password, as the configuration names it.
#[derive(Clone, Debug)]
pub enum Password {
    /// This one, not empty.
    Text(Secret),
    /// The first line of a file.
    File {
        /// The file's absolute path.
        file: String,
        /// The same as the configuration has it: a variable in it may hold what nobody should see.
        written: String,
    },
}

impl Password {
    /// The password as it is now, not empty.
    ///
    /// # Errors
    /// When the file can't be read, or its first line is empty.
    pub fn read(&self) -> Result<Secret, FileError> {
        match self {
            Self::Text(password) => Ok(password.clone()),
            Self::File { file, written } => files::password(file, written),
        }
    }

    /// The file that it is in.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::File { file, .. } => Some(file),
        }
    }
}
