//! Values made of files, and made anew when the files change: tokens and certificates are replaced while the service
//! runs.

use std::{
    fmt::{self, Display},
    path::Path,
    sync::Arc,
    time::Duration,
};

use sha2::{Digest as _, Sha256};
use tokio::{sync::watch, task::spawn_blocking, time::sleep};

use crate::config::read_regular;

/// How often the files are looked at. They are read whole: they are small, and neither times nor sizes tell every change,
/// for example where a folder of secrets is replaced by renaming a link.
const INTERVAL: Duration = Duration::from_secs(1);

/// A value that may be made anew while it is used.
pub struct Renewed<T>(watch::Receiver<Arc<T>>);

impl<T: Send + Sync + 'static> Renewed<T> {
    /// A value that stays.
    pub fn fixed(value: T) -> Self {
        Self(watch::channel(Arc::new(value)).1)
    }

    /// A value made of `files`, and from then on whenever one of them changes; `what` names it in the log. Files that are
    /// of no use, as when one of two is replaced already, change nothing: what was made before stays, and they are
    /// tried again. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// What `make` says against the files as they are now.
    pub fn of_files<E: Display>(
        what: &'static str,
        files: Vec<String>,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        // Looked at first: what changes in between is then seen as a change.
        let made_of = digest(&files);
        let (sender, receiver) = watch::channel(Arc::new(make()?));
        tokio::spawn(renew(
            what,
            Arc::new(files),
            made_of,
            Arc::new(move || make().map_err(|e| e.to_string())),
            sender,
        ));
        Ok(Self(receiver))
    }

    /// The value as it is now.
    #[must_use]
    pub fn get(&self) -> Arc<T> {
        self.0.borrow().clone()
    }
}

/// Ends when nobody uses the value any more.
async fn renew<T: Send + Sync + 'static>(
    what: &'static str,
    files: Arc<Vec<String>>,
    mut made_of: [u8; 32],
    make: Arc<impl Fn() -> Result<T, String> + Send + Sync + 'static>,
    sender: watch::Sender<Arc<T>>,
) {
    let mut told = None;
    while !sender.is_closed() {
        sleep(INTERVAL).await;
        let (files, make) = (Arc::clone(&files), Arc::clone(&make));
        let looked = spawn_blocking(move || {
            let found = digest(&files);
            (found != made_of).then(|| (found, make()))
        });
        match looked.await {
            Ok(Some((found, Ok(value)))) => {
                tracing::info!(what, "files changed: read anew");
                sender.send_replace(Arc::new(value));
                (made_of, told) = (found, None);
            }
            Ok(Some((_, Err(error)))) => {
                // Between two files that are replaced one after the other this is usual, so it is news only when it
                // stays.
                if told.as_ref() == Some(&error) {
                    continue;
                }
                tracing::warn!(what, %error, "files changed, but can't be used: those from before stay");
                told = Some(error);
            }
            Ok(None) => told = None,
            // The runtime is ending.
            Err(_) => return,
        }
    }
}

/// Of the content of all files; a file that can't be read counts as empty.
fn digest(files: &[String]) -> [u8; 32] {
    let mut digest = Sha256::new();
    for file in files {
        let content = read_regular(Path::new(file)).unwrap_or_default();
        digest.update((content.len() as u64).to_be_bytes());
        digest.update(content);
    }
    digest.finalize().into()
}

impl<T> Clone for Renewed<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Shows nothing: the value may be a secret.
impl<T> fmt::Debug for Renewed<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Renewed")
    }
}

#[cfg(test)]
impl<T> Renewed<T> {
    /// Until the value is made anew the next time, counted from the call.
    pub(crate) fn changed(&self) -> impl Future<Output = ()> + use<T> {
        let mut receiver = self.0.clone();
        receiver.mark_unchanged();
        async move { receiver.changed().await.unwrap() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_changed_file_is_read_anew_and_a_bad_one_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("number").to_str().unwrap().to_owned();
        fs::write(&file, "1").unwrap();
        let number = {
            let file = file.clone();
            Renewed::of_files("number", vec![file.clone()], move || fs::read_to_string(&file).unwrap().parse::<u32>())
        };
        let number = number.unwrap();
        let mut changes = number.0.clone();
        assert_eq!(*number.get(), 1);

        fs::write(&file, "x").unwrap();
        assert!(tokio::time::timeout(INTERVAL * 3, changes.changed()).await.is_err());
        assert_eq!(*number.get(), 1);
        fs::write(&file, "2").unwrap();
        changes.changed().await.unwrap();
        assert_eq!(*number.get(), 2);
    }

    /// Nor does what never ends fill the memory, nor what nobody writes to hold up the next look.
    #[tokio::test(start_paused = true)]
    async fn what_is_no_regular_file_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("number");
        let file = path.to_str().unwrap().to_owned();
        fs::write(&file, "1").unwrap();
        let number = {
            let file = file.clone();
            let read = move || {
                read_regular(Path::new(&file)).map_err(|_| ()).and_then(|text| text.parse::<u32>().map_err(|_| ()))
            };
            Renewed::of_files("number", vec![path.to_str().unwrap().to_owned()], move || {
                read().map_err(|()| "no number")
            })
        };
        let number = number.unwrap();
        let mut changes = number.0.clone();
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert!(tokio::time::timeout(INTERVAL * 3, changes.changed()).await.is_err());
        fs::remove_file(&file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        assert!(tokio::time::timeout(INTERVAL * 3, changes.changed()).await.is_err());
        fs::remove_file(&file).unwrap();
        fs::write(&file, "2").unwrap();
        changes.changed().await.unwrap();
        assert_eq!(*number.get(), 2);
    }

    #[tokio::test]
    async fn files_that_are_bad_at_first_are_an_error() {
        let made = Renewed::of_files("number", Vec::new(), || "x".parse::<u32>());
        assert!(made.is_err());
    }
}
