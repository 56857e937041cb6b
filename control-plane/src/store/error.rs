//! Why the store gave no decision.

mod tls;

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use sluicegate_lua::{MemoryError, ReplyError};

/// Why the store gave no decision. None of them says that nothing was charged: a reply can be lost on its way back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No reply within the time that the caller or `store.timeout` allows.
    #[error("the store did not answer in time")]
    Timeout,
    /// It has not answered for a while, and no call is made until it does.
    #[error("the store can't be reached: it does not answer")]
    Silent,
    /// It answers, but later than callers wait; no call is made until it is faster.
    #[error("the store answers, but later than store.timeout ({} ms)", .0.as_millis())]
    Slow(Duration),
    /// There is no connection, or it broke.
    #[error("the store can't be reached: {0}")]
    Unavailable(String),
    /// As many calls are under way as may be.
    #[error("too many calls to the store are under way")]
    Overloaded,
    /// The store answered, but not with a decision.
    #[error("the store refused: {0}")]
    Refused(String),
}

impl StoreError {
    /// Every [`StoreError::reason`].
    pub const REASONS: [&str; 5] = ["timeout", "slow", "unavailable", "overloaded", "refused"];

    /// The kind in a word, for metrics.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Slow(_) => "slow",
            Self::Unavailable(_) | Self::Silent => "unavailable",
            Self::Overloaded => "overloaded",
            Self::Refused(_) => "refused",
        }
    }

    /// What a call that fails at once says for this reason: it didn't wait itself.
    #[must_use]
    pub(super) fn at_once(self) -> Self {
        if self == Self::Timeout { Self::Silent } else { self }
    }
}

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_io_error() {
            Self::Unavailable(match tls::fault(&error) {
                Some(fault) => format!("TLS: {fault}"),
                None => text(&error),
            })
        } else if error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS") {
            // The client doesn't tell what the server said to it.
            Self::Refused(format!("it does not accept the login; check {LOGIN}"))
        } else if wants_login(&error) {
            Self::Refused(format!("it wants a login; set {LOGIN}"))
        } else if error.kind() == ServerErrorKind::ClusterDown.into() {
            // Its default lets one dead master stop all slots.
            Self::Refused(format!("{}; see cluster-require-full-coverage", text(&error)))
        } else {
            Self::Refused(text(&error))
        }
    }
}

/// What the client says, in one line. A server that doesn't know a command says its arguments back, and those of HELLO
/// and AUTH are the login.
fn text(error: &RedisError) -> String {
    let text = error.to_string();
    let text = text.split(", with args").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const LOGIN: &str = "store.username and store.password, for a sentinel those in store.sentinel";

/// Redis answers NOAUTH, or breaks off when the command is as long as a script's.
fn wants_login(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH") || error.detail().is_some_and(|detail| detail.contains("unauthenticated"))
}

impl From<ReplyError> for StoreError {
    fn from(error: ReplyError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<MemoryError> for StoreError {
    fn from(error: MemoryError) -> Self {
        Self::Refused(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use redis::make_extension_error;

    use super::*;

    #[test]
    fn a_call_that_fails_at_once_does_not_say_that_it_waited() {
        let (waited, at_once) = (StoreError::Timeout, StoreError::Timeout.at_once());
        assert_eq!(waited.to_string(), "the store did not answer in time");
        assert_eq!(at_once.to_string(), "the store can't be reached: it does not answer");
        assert_eq!(at_once.reason(), "unavailable");
        let slow = StoreError::Slow(Duration::from_millis(20));
        assert_eq!(slow.clone().at_once(), slow);
    }

    #[test]
    fn no_argument_of_a_command_comes_back_and_all_is_one_line() {
        let detail = "unknown command 'HELLO', with args beginning with: '3' 'AUTH' 'default' 'hunter2' ";
        let error = StoreError::from(make_extension_error("ERR".to_owned(), Some(detail.to_owned())));
        assert_eq!(error.to_string(), "the store refused: \"ERR\": unknown command 'HELLO'");
        let error = StoreError::from(make_extension_error("ERR".to_owned(), Some("one\ntwo".to_owned())));
        assert_eq!(error.to_string(), "the store refused: \"ERR\": one two");
    }
}
