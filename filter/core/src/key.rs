//! Who a limit counts: the key of a request.

use sluicegate_wire::{Part, Pepper, Subject};

use crate::{Field, HeaderName, Request, address};

/// The parts that make a limit's key, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<KeyPart>);

/// One part of a key. A part that the request doesn't have, or has twice, is [`Part::MISSING`]: all those requests
/// share one bucket, so leaving a header out or doubling it is no way around a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The client's address; IPv6 by its /64.
    ClientIp,
    /// A request header's value.
    Header {
        /// The header's name.
        name: HeaderName,
        /// Whether only the value's digest may leave the proxy.
        secret: bool,
    },
}

/// Why parts are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 1 to {} parts", Key::MAX_PARTS)]
pub struct KeyError;

impl Key {
    /// The most parts of one key; bounds the size of a question.
    pub const MAX_PARTS: usize = 8;

    /// A key of these parts.
    pub fn new(parts: Vec<KeyPart>) -> Result<Self, KeyError> {
        if parts.is_empty() || parts.len() > Self::MAX_PARTS {
            return Err(KeyError);
        }
        Ok(Self(parts))
    }

    /// The subject that the request is counted as; `pepper` goes into the digests of secrets.
    pub(crate) fn subject(&self, request: &dyn Request, pepper: Option<&Pepper>) -> Subject {
        let parts = self.0.iter().map(|part| part.of(request, pepper)).collect();
        // A key has a part, so the subject has one, and the fallback never shows.
        Subject::new(parts).unwrap_or_else(|_| Subject::text(""))
    }
}

impl KeyPart {
    fn of(&self, request: &dyn Request, pepper: Option<&Pepper>) -> Part {
        match self {
            Self::ClientIp => request
                .property(&["source", "address"])
                .and_then(|address| address::client(&address))
                .map_or(Part::MISSING, Part::text),
            Self::Header { name, secret } => match request.headers().get(name.as_str()) {
                Field::Absent | Field::Several => Part::MISSING,
                Field::One(value) if *secret => Part::secret(value, pepper),
                Field::One(value) => Part::bytes(value),
            },
        }
    }
}
