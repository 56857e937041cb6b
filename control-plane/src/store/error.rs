//! Why the store gave no decision.

use redis::RedisError;
use sluicegate_lua::{MemoryError, ReplyError};

/// Why the store gave no decision. None of them says that nothing was charged: a reply can be lost on its way back.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No reply within the time that the caller or `store.timeout` allows.
    #[error("the store did not answer in time")]
    Timeout,
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

impl From<RedisError> for StoreError {
    fn from(error: RedisError) -> Self {
        if error.is_timeout() {
            Self::Timeout
        } else if error.is_io_error() {
            Self::Unavailable(error.to_string())
        } else {
            Self::Refused(error.to_string())
        }
    }
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
