//! Follows the configuration file: what it says anew is put to use, or refused.
//!
//! The file is read once a second and compared as a whole. Notices of the file system would not do: a ConfigMap changes
//! by a symlink above the file, and not every file system gives them. A new text must stay the same for a moment before
//! it counts, since a file that is written in place is short for a while, and the half of it may well be a
//! configuration.

use std::{
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::Live;
use crate::config::{Config, ConfigErrors, TextDigest, Written, read_regular};

/// How often the file is read.
const EVERY: Duration = Duration::from_secs(1);
/// How long a new text must stay the same.
const SETTLE: Duration = Duration::from_millis(200);

/// How long a text that was refused is left alone. It may be good by then, since it names other files; and a long one
/// takes a while to parse.
const RETRY: Duration = Duration::from_secs(10);

/// Follows one file.
#[derive(Debug)]
pub struct Follower {
    live: Live,
    path: PathBuf,
    environment: fn(&str) -> Option<String>,
    /// What the file said when the service started: all of it but the policies is still used.
    started: Written,
    /// What the file was when it was last tried.
    tried: Found,
    /// When that was.
    tried_at: Instant,
    /// Why that was refused, if it was.
    refused: Option<String>,
}

/// What a look at the file finds: a text, or why there is none.
type Found = Result<TextDigest, String>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Changed,
    Asked,
}

impl Follower {
    /// Follows the file at `path` for `live`. It said what is `started` when the service was made of it. `environment`
    /// is as in [`Config::load`].
    #[must_use]
    pub fn new(live: Live, path: &Path, environment: fn(&str) -> Option<String>, started: Written) -> Self {
        let tried = Ok(started.text());
        let tried_at = Instant::now();
        Self { live, path: path.to_owned(), environment, started, tried, tried_at, refused: None }
    }

    /// The SIGHUPs from now on, which would end the process otherwise. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// When the system has no room for a handler.
    pub fn hangups() -> io::Result<Signal> {
        signal(SignalKind::hangup())
    }

    /// Never ends by itself. A SIGHUP tries the file at once, changed or not, and always logs what became of it.
    pub async fn follow(mut self, mut hangups: Signal) {
        let is_file = is_file(&self.path);
        if !is_file {
            tracing::warn!(file = %self.path.display(), "no regular file, so changes of it are not seen");
        }
        let mut new = None;
        loop {
            let wait = if new.is_some() { SETTLE } else { EVERY };
            let cause = tokio::select! {
                () = sleep(wait), if is_file => Cause::Changed,
                Some(()) = hangups.recv() => Cause::Asked,
            };
            let text = self.read().await;
            let found = found(&text);
            let known = found == self.tried;
            let again = known && self.refused.is_some() && self.tried_at.elapsed() >= RETRY;
            if cause == Cause::Asked || again || new.as_ref() == Some(&found) {
                self.attempt(text, found, cause).await;
                new = None;
            } else {
                new = if known { None } else { Some(found) };
            }
        }
    }

    async fn attempt(&mut self, text: Result<String, ConfigErrors>, found: Found, cause: Cause) {
        let (name, environment) = (self.path.display().to_string(), self.environment);
        let config = blocking(move || Config::parse(&name, &text?, &environment)).await;
        let known = found == self.tried;
        (self.tried, self.tried_at) = (found, Instant::now());
        match config {
            Ok(_) if known && self.refused.is_none() => {
                tracing::info!(version = %self.live.version(), "the configuration is as it was");
            }
            Ok(config) => {
                self.refused = None;
                self.put_to_use(config);
            }
            Err(errors) => {
                let error = errors.to_string();
                if cause == Cause::Asked || !known || self.refused.as_ref() != Some(&error) {
                    let version = self.live.version();
                    tracing::error!(error = errors.summary(), %version, "refused: the configuration of before is kept");
                    self.live.refuse(error.clone(), SystemTime::now());
                }
                self.refused = Some(error);
            }
        }
    }

    fn put_to_use(&self, config: Config) {
        let (before, now) = (self.live.current(), &config.policies);
        let removed = before.iter().filter(|policy| now.get(policy.name().as_str()).is_none()).count();
        let added = now.iter().filter(|policy| before.get(policy.name().as_str()).is_none()).count();
        let same = now.iter().filter(|policy| before.get(policy.name().as_str()) == Some(*policy)).count();
        let (policies, version) = (now.len(), now.version());
        let changed = policies - added - same;
        let needs_restart = self.started.settings_changed(&config.written);
        let fields = needs_restart.join(", ");
        let is_news = !needs_restart.is_empty() && needs_restart != self.live.state().needs_restart;
        self.live.replace(config.policies, needs_restart, SystemTime::now());
        tracing::info!(%version, policies, added, changed, removed, "policies read anew");
        if is_news {
            tracing::warn!(fields, "changed in the configuration, but used only after a restart");
        }
    }

    async fn read(&self) -> Result<String, ConfigErrors> {
        let path = self.path.clone();
        blocking(move || {
            read_regular(&path).map_err(|error| ConfigErrors::Unreadable { file: path.display().to_string(), error })
        })
        .await
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file())
}

fn found(text: &Result<String, ConfigErrors>) -> Found {
    text.as_ref().map(|text| TextDigest::of(text)).map_err(ToString::to_string)
}

/// Runs what would hold up a thread that answers checks.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ConfigErrors> + Send + 'static,
) -> Result<T, ConfigErrors> {
    spawn_blocking(work).await.unwrap_or_else(|error| {
        let (file, error) = ("the configuration".to_owned(), io::Error::other(error));
        Err(ConfigErrors::Unreadable { file, error })
    })
}
