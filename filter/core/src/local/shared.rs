//! Data that the workers of a proxy share.

/// What the proxy keeps for all of its workers: values by key, each with a number that changes with every write.
pub trait SharedData {
    /// The value of a key; none when it was never set.
    fn get(&self, key: &str) -> Result<Option<Stored>, Unreadable>;

    /// Sets the key if nobody has since it was read: `seen` is the number read, or none when there was no value.
    fn set(&self, key: &str, value: &[u8], seen: Option<Cas>) -> Result<(), SetError>;
}

/// A value and the number of the write that set it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The value.
    pub value: Vec<u8>,
    /// The number.
    pub cas: Cas,
}

/// The number of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cas(pub u32);

/// The proxy did not hand the value over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// Why a value was not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError {
    /// Somebody else set it in the meantime.
    Mismatch,
    /// The proxy would not.
    Refused,
}
