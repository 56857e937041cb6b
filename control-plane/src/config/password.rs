//! A password that may change while the service runs.

use std::sync::{Arc, Mutex, PoisonError};

use super::{
    Secret,
    files::{self, FileError},
};

/// A password: as it is written, or the first line of a file, which is read anew for each connection.
#[derive(Clone, Debug)]
pub struct Password(Source);

#[derive(Clone, Debug)]
enum Source {
    Written(Secret),
    File {
        path: String,
        /// The path as the configuration has it, for messages.
        written: String,
        last: Arc<Mutex<Last>>,
    },
}

#[derive(Debug)]
struct Last {
    password: Secret,
    /// Whether the last attempt to read the file failed.
    failing: bool,
}

impl Password {
    /// Always this; not empty.
    pub(super) const fn written(password: Secret) -> Self {
        Self(Source::Written(password))
    }

    /// The first line of the file at `path`, which the configuration writes as `written`.
    pub(super) fn file(path: String, written: &str) -> Result<Self, FileError> {
        let last = Last { password: files::password(&path, written)?, failing: false };
        Ok(Self(Source::File { path, written: written.to_owned(), last: Arc::new(Mutex::new(last)) }))
    }

    /// The password as it is now; never empty. Of a file that can't be read for once, as while it is replaced, the last
    /// that it had: the server says whether it is still good.
    #[must_use]
    pub fn current(&self) -> Secret {
        match &self.0 {
            Source::Written(password) => password.clone(),
            Source::File { path, written, last } => {
                // Nothing in there is ever half done.
                let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                match files::password(path, written) {
                    Ok(password) => *last = Last { password, failing: false },
                    Err(error) => {
                        if !last.failing {
                            tracing::warn!(%error, "no new password, so the last one is used");
                        }
                        last.failing = true;
                    }
                }
                last.password.clone()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_is_read_anew_and_its_last_password_outlives_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        let path = file.display().to_string();
        assert!(Password::file(path.clone(), "$FILE").is_err());
        fs::write(&file, "first\n").unwrap();
        let password = Password::file(path, "$FILE").unwrap();
        assert_eq!(password.current().expose(), "first");
        fs::write(&file, "second\n").unwrap();
        assert_eq!(password.clone().current().expose(), "second");
        fs::write(&file, "\n").unwrap();
        assert_eq!(password.current().expose(), "second");
        fs::remove_file(&file).unwrap();
        assert_eq!(password.current().expose(), "second");
        // A pipe that nobody writes to holds nobody up.
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, rustix::fs::Mode::RWXU).unwrap();
        assert_eq!(password.current().expose(), "second");
        fs::remove_file(&file).unwrap();
        fs::write(&file, "third").unwrap();
        assert_eq!(password.current().expose(), "third");
        assert!(!format!("{password:?}").contains("third"));
    }
}
