//! Keys in Redis.

use sluicegate_wire::{EncodedSubject, Name};

/// What every key of a deployment begins with (`store.prefix`): the alphabet of a name, so that it can't open a hash
/// tag of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPrefix(String);

impl KeyPrefix {
    /// A prefix.
    #[must_use]
    pub fn new(prefix: Name) -> Self {
        Self(prefix.into())
    }

    /// The keys of one policy and subject.
    #[must_use]
    pub fn keys(&self, policy: &Name, subject: &EncodedSubject) -> Keys {
        Keys(format!("{}:{{{policy}:{subject}}}", self.0))
    }

    /// Keys that no policy has, for seeing whether a server takes; of each `number` in another slot of a cluster.
    #[must_use]
    pub fn probe_keys(&self, number: u32) -> Keys {
        Keys(format!("{}:{{!probe{number}}}", self.0))
    }
}

impl Default for KeyPrefix {
    /// `sg`.
    fn default() -> Self {
        Self("sg".to_owned())
    }
}

/// The keys of one policy and subject: `sg:{<policy>:<subject>}` and what follows. The braces are the hash tag, so that
/// all of them share one slot of a cluster while subjects spread over all slots.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keys(String);

impl Keys {
    /// What all of them begin with, the hash tag included.
    #[must_use]
    pub fn slot_prefix(&self) -> &str {
        &self.0
    }

    /// What Redis Cluster hashes into a slot: the text between the braces.
    #[must_use]
    pub fn hash_tag(&self) -> &str {
        let tag = self.0.split_once('{').map_or("", |(_, tag)| tag);
        tag.strip_suffix('}').unwrap_or(tag)
    }

    /// The subject, encoded.
    #[must_use]
    pub fn subject(&self) -> &str {
        // No policy's name holds a colon.
        self.hash_tag().split_once(':').map_or("", |(_, subject)| subject)
    }

    /// The key of one limit.
    #[must_use]
    pub fn limit(&self, limit: &Name) -> String {
        format!("{}:{limit}", self.0)
    }

    /// The key of the subject's ban, or of its denials so far. No limit's name holds a `!`.
    #[must_use]
    pub fn ban(&self) -> String {
        format!("{}!ban", self.0)
    }

    /// The key of the subject's own numbers.
    #[must_use]
    pub fn overrides(&self) -> String {
        format!("{}!override", self.0)
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_wire::Subject;

    use super::*;

    #[test]
    fn nothing_in_a_subject_reaches_the_hash_tag() {
        for (subject, expected) in [
            ("203.0.113.7", "sg:{login:203.0.113.7}"),
            ("", "sg:{login:}"),
            ("}x", "sg:{login:%7Dx}"),
            ("{u1}", "sg:{login:%7Bu1%7D}"),
            ("a:b", "sg:{login:a%3Ab}"),
        ] {
            let policy = "login".parse().unwrap();
            let keys = KeyPrefix::default().keys(&policy, &Subject::text(subject).encode(None));
            assert_eq!(keys.limit(&"burst".parse().unwrap()), format!("{expected}:burst"));
            assert_eq!(format!("sg:{{{}}}", keys.hash_tag()), expected);
            assert_eq!(format!("sg:{{login:{}}}", keys.subject()), expected);
            assert_eq!(keys.ban(), format!("{expected}!ban"));
            assert_eq!(keys.overrides(), format!("{expected}!override"));
        }
    }
}
