//! Who a limit counts: the key of a request.

use sluicegate_wire::{Part, Pepper, Subject};

use crate::{
    source::{Found, Source},
    view::View,
};

/// The parts that make a limit's key, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(Vec<KeyPart>);

/// One part of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Where its value comes from.
    pub source: Source,
    /// Whether only the value's digest may leave the proxy.
    pub secret: bool,
    /// What becomes of a request without the value.
    pub missing: Missing,
}

/// What becomes of a request that doesn't have the value. One that has it several times doesn't have it either: which of
/// them counts, upstreams decide differently.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// All requests without it share one bucket, which no value names. So leaving it out or doubling it is no way around
    /// the limit.
    #[default]
    Shared,
    /// The limit is not for requests without it. Those that have it several times share a bucket all the same.
    Skip,
    /// The request is rejected.
    Deny,
    /// As if this had been sent.
    Value(String),
}

/// Why parts are not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 1 to {} parts", Key::MAX_PARTS)]
pub struct KeyError;

/// The key of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Keyed {
    /// It is counted as this.
    Subject(Subject),
    /// The limit is not for it.
    Skip,
    /// It lacks what the limit demands.
    Deny,
}

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

    /// The parts.
    #[must_use]
    pub fn parts(&self) -> &[KeyPart] {
        &self.0
    }

    /// Who the request is counted as; `pepper` goes into the digests of secrets. Of several parts that are missing, the
    /// one that limits most has its way.
    pub(crate) fn of(&self, view: &View<'_>, pepper: Option<&Pepper>) -> Keyed {
        let mut parts = Vec::with_capacity(self.0.len());
        let mut skip = false;
        for part in &self.0 {
            match part.of(view, pepper) {
                Keying::Part(part) => parts.push(part),
                Keying::Skip => skip = true,
                Keying::Deny => return Keyed::Deny,
            }
        }
        if skip {
            return Keyed::Skip;
        }
        // A key has a part, so the subject has one, and the fallback never shows.
        Keyed::Subject(Subject::new(parts).unwrap_or_else(|_| Subject::text("")))
    }
}

enum Keying {
    Part(Part),
    Skip,
    Deny,
}

impl KeyPart {
    fn of(&self, view: &View<'_>, pepper: Option<&Pepper>) -> Keying {
        let part = |value: Vec<u8>| if self.secret { Part::secret(&value, pepper) } else { Part::bytes(value) };
        Keying::Part(match (self.source.find(view), &self.missing) {
            (Found::One(value), _) => part(value),
            (Found::Absent | Found::Several, Missing::Shared) | (Found::Several, Missing::Skip) => Part::MISSING,
            (Found::Absent, Missing::Skip) => return Keying::Skip,
            (Found::Absent | Found::Several, Missing::Deny) => return Keying::Deny,
            (Found::Absent | Found::Several, Missing::Value(value)) => part(value.clone().into_bytes()),
        })
    }
}
