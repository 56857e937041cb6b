//! Tokens: what callers present to show that they may ask.

use super::{FileError, Secret, files};

/// The tokens that callers may present.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// This one.
    Text(Secret),
    /// Those of a file, each on a line of its own. While a token is being replaced, both are there.
    File {
        /// The file's absolute path.
        file: String,
        /// The same as the configuration has it: a variable in it may hold what nobody should see.
        written: String,
    },
}

impl Tokens {
    /// The tokens as they are now, at least one.
    ///
    /// # Errors
    /// When the file can't be read, or has no token or a bad one.
    pub fn read(&self) -> Result<Vec<Secret>, FileError> {
        match self {
            Self::Text(token) => Ok(vec![token.clone()]),
            Self::File { file, written } => files::tokens(file, written),
        }
    }

    /// The file that they are in.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        match self {
            Self::Text(_) => None,
            Self::File { file, .. } => Some(file),
        }
    }
}

/// Why a text can't be a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token travels in a header, so it is of visible ASCII characters, without blanks; make one with openssl rand -hex 32"
)]
pub struct TokenError;

/// Whether a caller could send this as a token at all.
pub(super) fn check_token(text: &str) -> Result<(), TokenError> {
    let visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if visible { Ok(()) } else { Err(TokenError) }
}
