//! What the descriptors of Envoy's rate limit filter mean: which policy each is for, and whom it counts.

mod check;
mod raw;

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use sluicegate_lua::Policy;

pub(super) use raw::RawRateLimitService;

/// The mappings of each domain (`rate_limit_service`). Without any domain nothing is answered.
#[derive(Clone, Debug, Default)]
pub struct RateLimitService {
    /// The mappings of each domain, of which the first that matches decides.
    pub domains: BTreeMap<String, Vec<Mapping>>,
    /// Whether a domain that isn't among them is an error. By default it has no limits, as with Envoy's reference
    /// service.
    pub refuse_unknown_domain: bool,
}

/// What descriptors of one shape mean.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The entries of a descriptor, all of them and in this order.
    pub entries: Vec<Entry>,
    /// What becomes of the descriptors that have them.
    pub outcome: Outcome,
}

/// One entry of a descriptor, as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: Value,
}

/// The value of an entry, as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Any value.
    Any,
    /// Any value that begins so.
    Prefix(String),
    /// This one.
    Exact(String),
}

/// What becomes of a descriptor.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It is allowed, without asking.
    Unlimited,
    /// It is counted.
    Limited {
        /// By this policy.
        policy: Arc<Policy>,
        /// For a subject of the values of these entries.
        key: Vec<KeyPart>,
        /// Judged and charged, but never denied.
        shadow: bool,
    },
}

/// Which entry's value is a part of the subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// The index of the entry.
    pub entry: usize,
    /// Whether only a digest of it is kept.
    pub secret: bool,
}

impl RateLimitService {
    /// Everything about it, a line each, for the version of a configuration. Texts are quoted, so that no two
    /// configurations give the same.
    pub(super) fn canonical(&self) -> Vec<String> {
        let refuse = self.refuse_unknown_domain.then(|| "refuse unknown domain\n".to_owned());
        let domains = self.domains.iter().flat_map(|(domain, mappings)| {
            std::iter::once(format!("domain {domain:?}\n")).chain(mappings.iter().map(Mapping::canonical))
        });
        refuse.into_iter().chain(domains).collect()
    }
}

impl Mapping {
    fn canonical(&self) -> String {
        let mut text = "mapping".to_owned();
        for Entry { key, value } in &self.entries {
            // A string takes all that is written to it, here and below.
            let _ = match value {
                Value::Any => write!(text, " {key:?} any"),
                Value::Prefix(prefix) => write!(text, " {key:?} prefix {prefix:?}"),
                Value::Exact(exact) => write!(text, " {key:?} exact {exact:?}"),
            };
        }
        match &self.outcome {
            Outcome::Unlimited => text.push_str(" unlimited"),
            Outcome::Limited { policy, key, shadow } => {
                let _ = write!(text, " policy {} shadow {shadow} key", policy.name());
                for KeyPart { entry, secret } in key {
                    let _ = write!(text, " {entry} {secret}");
                }
            }
        }
        text.push('\n');
        text
    }

    /// Whether a descriptor with these entries (key and value, in order) is one of this mapping's.
    pub fn matches<'a>(&self, mut entries: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>) -> bool {
        entries.len() == self.entries.len()
            && self.entries.iter().all(|entry| entries.next().is_some_and(|(key, value)| entry.matches(key, value)))
    }

    /// Whether no descriptor of the other is left by this one.
    fn covers(entries: &[Entry], other: &[Entry]) -> bool {
        entries.len() == other.len() && entries.iter().zip(other).all(|(entry, other)| entry.covers(other))
    }
}

impl Entry {
    fn matches(&self, key: &[u8], value: &[u8]) -> bool {
        let value_matches = match &self.value {
            Value::Any => true,
            Value::Prefix(prefix) => value.starts_with(prefix.as_bytes()),
            Value::Exact(exact) => value == exact.as_bytes(),
        };
        value_matches && key == self.key.as_bytes()
    }

    fn covers(&self, other: &Self) -> bool {
        let value_covers = match (&self.value, &other.value) {
            (Value::Any, _) => true,
            (Value::Prefix(prefix), Value::Prefix(other) | Value::Exact(other)) => other.starts_with(prefix),
            (Value::Exact(exact), Value::Exact(other)) => exact == other,
            (Value::Prefix(_) | Value::Exact(_), _) => false,
        };
        value_covers && self.key == other.key
    }
}
