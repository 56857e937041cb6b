//! Which reply is cut off.

use std::time::Instant;

/// The longest text looked for, in bytes: as much of a connection is remembered.
const MAX_NEEDLE: usize = 1024;

/// An order that hasn't struck yet.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    needle: Vec<u8>,
    keep_bytes: usize,
}

impl Cut {
    pub(super) fn new(needle: &[u8], keep_bytes: usize) -> Self {
        assert!((1..=MAX_NEEDLE).contains(&needle.len()), "a needle has 1 to {MAX_NEEDLE} bytes");
        Self { needle: needle.to_owned(), keep_bytes }
    }
}

/// What is left for a connection's reply: what the server sent after `since` is passed on up to `keep_bytes`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    pub(super) since: Instant,
    pub(super) keep_bytes: usize,
}

/// The end of what a client has sent.
#[derive(Debug, Default)]
pub(super) struct Sent(Vec<u8>);

impl Sent {
    /// Adds the next bytes, and takes the order if they complete its needle.
    pub(super) fn extend(&mut self, bytes: &[u8], order: &mut Option<Cut>) -> Option<Due> {
        let old = self.0.len();
        self.0.extend_from_slice(bytes);
        let due = order.take_if(|cut| {
            // Only what ends in the new bytes: what came earlier was not followed by this order.
            let from = (old + 1).saturating_sub(cut.needle.len());
            self.0[from..].windows(cut.needle.len()).any(|window| window == cut.needle)
        });
        self.0.drain(..self.0.len().saturating_sub(MAX_NEEDLE));
        due.map(|cut| Due { since: Instant::now(), keep_bytes: cut.keep_bytes })
    }
}
