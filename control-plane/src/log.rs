//! Logs: to standard error, as text or JSON, one line per change of state and none per request.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

/// The environment variable with the level or filter directives; unset or empty means `info`.
pub const FILTER: &str = "SLUICEGATE_LOG";
/// The environment variable with the format, `text` or `json`; unset or empty means `text`.
pub const FORMAT: &str = "SLUICEGATE_LOG_FORMAT";

/// Why logging can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// Not a level, nor filter directives.
    #[error("{FILTER}: {0}; use error, warn, info, debug or trace, or target=level pairs with commas between them")]
    Filter(tracing_subscriber::filter::ParseError),
    /// Not a format.
    #[error("{FORMAT}: {0:?} is not a format; use text or json")]
    Format(String),
    /// This process logs already.
    #[error("logging is set up twice")]
    Twice,
}

/// Starts logging for the whole process, panics included.
///
/// # Errors
/// When a variable has a value that means nothing, or logging was set up before.
pub fn init(environment: &dyn Fn(&str) -> Option<String>) -> Result<(), LogError> {
    let set = |variable| environment(variable).filter(|value| !value.is_empty());
    let filter = set(FILTER).unwrap_or_else(|| "info".to_owned());
    let filter = filter.parse::<EnvFilter>().map_err(LogError::Filter)?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_target(false);
    match set(FORMAT).as_deref() {
        None | Some("text") => lines.with_ansi(io::stderr().is_terminal()).try_init(),
        Some("json") => lines.json().flatten_event(true).try_init(),
        Some(other) => return Err(LogError::Format(other.to_owned())),
    }
    .map_err(|_| LogError::Twice)?;
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}
