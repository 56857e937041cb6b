//! Keys in Redis.

use sluicegate_wire::{EncodedSubject, Name};

/// What every key of a deployment begins with (`store.prefix`): the alphabet of a name, so that it can't open a hash
/// tag of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(Name);

impl KeyPrefix {
    /// A prefix.
    #[must_use]
    pub const fn new(prefix: Name) -> Self {
        Self(prefix)
    }
}

impl Default for KeyPrefix {
    /// `sg`.
    fn default() -> Self {
        Self("sg".parse().unwrap_or_else(|_| unreachable!("sg is a name")))
    }
}

/// The key of one limit's bucket: `sg:{<policy>:<subject>}:<limit>`. The braces are the hash tag, so that all limits
/// of a policy and subject share one slot of a cluster while subjects spread over all of them.
#[must_use]
pub fn bucket_key(prefix: &KeyPrefix, policy: &Name, subject: &EncodedSubject, limit: &Name) -> String {
    format!("{}:{{{policy}:{subject}}}:{limit}", prefix.0)
}

#[cfg(test)]
mod tests {
    use sluicegate_wire::Subject;

    use super::*;

    #[test]
    fn nothing_in_a_subject_reaches_the_hash_tag() {
        for (subject, expected) in [
            ("203.0.113.7", "sg:{login:203.0.113.7}:burst"),
            ("", "sg:{login:}:burst"),
            ("}x", "sg:{login:%7Dx}:burst"),
            ("{u1}", "sg:{login:%7Bu1%7D}:burst"),
            ("a:b", "sg:{login:a%3Ab}:burst"),
        ] {
            let (policy, limit) = ("login".parse().unwrap(), "burst".parse().unwrap());
            let key = bucket_key(&KeyPrefix::default(), &policy, &Subject::text(subject).encode(), &limit);
            assert_eq!(key, expected);
        }
    }
}
