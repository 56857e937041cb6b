//! The configuration file: read as written, then checked into types that can't be wrong.

mod address;
mod check;
mod duration;
mod error;
mod policies;
mod raw;
mod secret;
mod store_url;
mod substitute;

use std::{path::Path, time::Duration};

use sluicegate_lua::KeyPrefix;

pub use address::Address;
pub use error::{ConfigError, ConfigErrors};
pub use policies::Policies;
pub use secret::Secret;
pub use store_url::StoreUrl;

/// Everything the service is told.
#[derive(Debug)]
pub struct Config {
    /// Where checks are answered (`listen`).
    pub listen: Address,
    /// The listener for everything else.
    pub admin: Admin,
    /// Where buckets are kept.
    pub store: Store,
    /// How long requests are still answered after SIGTERM (`drain`).
    pub drain: Duration,
    /// What is limited.
    pub policies: Policies,
}

/// The admin listener.
#[derive(Debug)]
pub struct Admin {
    /// Where it listens (`admin.listen`).
    pub listen: Address,
    /// What callers must present (`admin.token`); always there when the address isn't local to the machine.
    pub token: Option<Secret>,
}

/// The store.
#[derive(Debug)]
pub struct Store {
    /// The server (`store.url`).
    pub url: StoreUrl,
    /// The longest that one operation may take, connecting included (`store.timeout`).
    pub timeout: Duration,
    /// What every key begins with (`store.prefix`).
    pub prefix: KeyPrefix,
}

impl Config {
    /// Reads and checks a file. `environment` looks up the variables that the file names as `${NAME}`.
    ///
    /// # Errors
    /// When the file can't be read, or with each fault's place in it.
    pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text, environment),
            Err(error) => Err(ConfigErrors::Unreadable { file, error }),
        }
    }

    /// Checks the text of a file, whose name is for messages only.
    ///
    /// # Errors
    /// With each fault's place in the text; a fault in the YAML itself or in a field's kind hides those after it.
    pub fn parse(file: &str, text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        raw::parse(text)
            .map_err(|fault| vec![fault])
            .and_then(|raw| check::check(&raw, environment))
            .map_err(|faults| ConfigErrors::faults(file, faults))
    }
}

#[cfg(test)]
mod tests;
