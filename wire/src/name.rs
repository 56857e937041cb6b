//! Names of policies, limits and rules.

use std::{borrow::Borrow, fmt};

use serde::{Deserialize, Serialize};

/// A policy's, limit's or rule's name: 1 to 64 of `A–Z a–z 0–9 _ . -`. The alphabet keeps names safe in a Redis key,
/// in a metric label and in a header without any escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 64;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name: use 1 to 64 of A-Z a-z 0-9 _ . -")]
pub struct NameError(String);

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
        if text.is_empty() || text.len() > Self::MAX_BYTES || !text.bytes().all(named) {
            return Err(NameError(text.chars().take(Self::MAX_BYTES + 1).collect()));
        }
        Ok(Self(text))
    }
}

impl std::str::FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        Self::try_from(text.to_owned())
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_and_the_length_are_enforced() {
        for good in ["a", "per-address", "A.b_9", &"x".repeat(64)] {
            assert_eq!(good.parse::<Name>().unwrap().as_str(), good);
        }
        for bad in ["", "a b", "a:b", "a{b", "é", "a\n", &"x".repeat(65)] {
            assert!(bad.parse::<Name>().is_err(), "{bad:?}");
        }
    }
}
