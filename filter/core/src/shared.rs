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

/// How often a change is tried when other workers are faster. Each failure is another worker's success, so only with more
/// workers than this at one value at one instant a change is given up.
const MAX_TRIES: u32 = 64;

/// Reads a value as it is now, lets `step` make another of it, or leave it, and writes that unless another worker was
/// faster; then all of that again. False when it could not be read or written.
pub(crate) fn change(
    shared: &dyn SharedData,
    key: &str,
    step: &mut dyn FnMut(Option<Vec<u8>>) -> Option<Vec<u8>>,
) -> bool {
    for _ in 0..MAX_TRIES {
        let Ok(stored) = shared.get(key) else { return false };
        let seen = stored.as_ref().map(|stored| stored.cas);
        let Some(changed) = step(stored.map(|stored| stored.value)) else { return true };
        match shared.set(key, &changed, seen) {
            Ok(()) => return true,
            Err(SetError::Mismatch) => {}
            Err(SetError::Refused) => return false,
        }
    }
    false
}

/// FNV-1a in 64 bits, with its high bits mixed in.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    hash ^ hash.wrapping_shr(32)
}

/// Takes numbers off the front of bytes, u64 little-endian, as [`write_numbers`] writes them; none when there are too
/// few.
pub(crate) fn read_numbers<const N: usize>(bytes: &mut &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for number in &mut numbers {
        let (first, rest) = bytes.split_first_chunk::<8>()?;
        (*number, *bytes) = (u64::from_le_bytes(*first), rest);
    }
    Some(numbers)
}

/// Adds numbers to bytes.
pub(crate) fn write_numbers(bytes: &mut Vec<u8>, numbers: &[u64]) {
    for number in numbers {
        bytes.extend(number.to_le_bytes());
    }
}
