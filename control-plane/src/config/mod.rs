//! The configuration file: read as written, then checked into types that can't be wrong.

mod address;
mod check;
mod check_listen;
mod check_login;
mod check_policy;
mod check_store;
mod check_tls;
mod duration;
mod error;
mod files;
mod hint;
mod host;
mod password;
mod policies;
mod rate_limit_service;
mod raw;
#[cfg(test)]
mod schema;
mod secret;
mod server_tls;
mod spanned;
mod store;
mod store_url;
mod substitute;
mod token;
mod version;
mod written;

use std::{
    fs::File,
    io::{self, Read as _},
    num::NonZeroUsize,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    time::Duration,
};

use rustix::fs::OFlags;
use sluicegate_wire::Pepper;

pub use address::Address;
pub(crate) use duration::parse as parse_duration;
pub use error::{ConfigError, ConfigErrors};
pub use files::FileError;
pub(crate) use hint::did_you_mean;
pub use host::HostPort;
pub use password::Password;
pub use policies::Policies;
pub use rate_limit_service::{Entry, KeyPart, Mapping, Outcome, RateLimitService, Value};
pub use secret::Secret;
pub use server_tls::{ServerTls, ServerTlsError};
pub use store::{Identity, Login, Store, Tls, Topology};
pub use token::{TokenError, Tokens};
pub use version::Version;
pub use written::{TextDigest, Written};

/// Everything the service is told.
#[derive(Debug)]
pub struct Config {
    /// Where checks are answered (`listen`).
    pub listen: Address,
    /// What callers must present there (`token` or `token_file`).
    pub token: Option<Tokens>,
    /// What it shows to callers, where it speaks TLS (`tls`).
    pub tls: Option<ServerTls>,
    /// Connections there at once (`max_connections`).
    pub max_connections: NonZeroUsize,
    /// Whether other processes may listen at the same addresses (`reuse_port`).
    pub reuse_port: bool,
    /// The listener for everything else.
    pub admin: Admin,
    /// Where buckets are kept.
    pub store: Store,
    /// How long requests are still answered after SIGTERM (`drain`).
    pub drain: Duration,
    /// What goes into the digests of secrets (`key_pepper`); the filter needs the same.
    pub key_pepper: Option<Pepper>,
    /// Whether callers of the data plane may refund (`refunds`), where that is said; see [`Config::allows_refunds`].
    pub refunds: Option<bool>,
    /// What is limited.
    pub policies: Policies,
    /// What the file said, to be compared with what it says later.
    pub written: Written,
}

/// The admin listener.
#[derive(Debug)]
pub struct Admin {
    /// Where it listens (`admin.listen`).
    pub listen: Address,
    /// What callers must present (`admin.token` or `admin.token_file`); always there when the address isn't local to the
    /// machine.
    pub token: Option<Tokens>,
    /// What callers of `/metrics` must present (`admin.metrics_token` or `admin.metrics_token_file`); without, nothing.
    pub metrics_token: Option<Tokens>,
    /// What it shows to callers, where it speaks TLS (`admin.tls`).
    pub tls: Option<ServerTls>,
}

impl Config {
    /// Reads and checks a file. `environment` looks up the variables that the file names as `${NAME}`.
    ///
    /// # Errors
    /// When the file can't be read, or with each fault's place in it.
    pub fn load(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        Self::parse(&path.display().to_string(), &Self::read(path)?, environment)
    }

    /// The text of a file.
    ///
    /// # Errors
    /// When it can't be read, isn't UTF-8, or is larger than any configuration.
    pub fn read(path: &Path) -> Result<String, ConfigErrors> {
        read(path).map_err(|error| ConfigErrors::Unreadable { file: path.display().to_string(), error })
    }

    /// Checks the text of a file, whose name is for messages only, and the files that it names.
    ///
    /// # Errors
    /// With each fault's place in the text; a fault in the YAML itself or in a field's kind hides those after it.
    pub fn parse(file: &str, text: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<Self, ConfigErrors> {
        raw::parse(text)
            .map_err(|fault| vec![fault])
            .and_then(|raw| check::check(&raw, Written::of(text), environment))
            .map_err(|faults| ConfigErrors::faults(file, faults))
    }

    /// Whether callers of the data plane may refund, where it listens at `address`: what [`Config::refunds`] says, else
    /// whether callers are this machine's or must show who they are.
    #[must_use]
    pub fn allows_refunds(&self, address: &Address) -> bool {
        let known = self.token.is_some() || self.tls.as_ref().is_some_and(|tls| tls.client_ca_file.is_some());
        self.refunds.unwrap_or(known || address.is_local())
    }
}

/// The largest file, in bytes: some ten thousand policies. A device or a pipe has no end.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

fn read(path: &Path) -> io::Result<String> {
    bounded(File::open(path)?)
}

/// Reads a file that is read again and again: what isn't regular could block its reader for ever, as a pipe that nobody
/// writes to does.
pub(crate) fn read_regular(path: &Path) -> io::Result<String> {
    let no_wait = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(no_wait).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    bounded(file)
}

fn bounded(file: File) -> io::Result<String> {
    let mut text = String::new();
    let read = file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it is over {MAX_FILE_BYTES} bytes, the most there may be")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
