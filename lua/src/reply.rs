//! Script replies: flat lists of integers, read front to back.

/// What came of a call whose arguments hold for a stretch of the store's time only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The script ran.
    Done(T),
    /// Nothing was done: the store's time is outside of what the call covered. Make the call anew for this time.
    OtherTime {
        /// The store's time, in ms since 1970.
        now_ms: u64,
    },
}

/// A reply that doesn't have the shape of its script: another program's script, or a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script's reply is not of the expected shape")]
pub struct ReplyError;

/// The integers of a reply that haven't been read yet.
#[derive(Debug)]
pub(crate) struct Reply<'a>(&'a [i64]);

impl<'a> Reply<'a> {
    pub(crate) const fn new(integers: &'a [i64]) -> Self {
        Self(integers)
    }

    /// The next integer; counts and times are never negative.
    pub(crate) fn next(&mut self) -> Result<u64, ReplyError> {
        let (first, rest) = self.0.split_first().ok_or(ReplyError)?;
        self.0 = rest;
        u64::try_from(*first).map_err(|_| ReplyError)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Refuses what should not be there.
    pub(crate) const fn end(self) -> Result<(), ReplyError> {
        if self.0.is_empty() { Ok(()) } else { Err(ReplyError) }
    }
}
