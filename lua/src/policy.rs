//! Policies: limits under names.

use sluicegate_wire::Name;

use crate::Bucket;

/// One limit of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's name: the last part of its key, so that a changed policy finds its buckets again.
    pub name: Name,
    /// Its numbers.
    pub bucket: Bucket,
}

/// A policy: one or more limits that a check takes from together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    name: Name,
    limits: Vec<Limit>,
}

impl Policy {
    /// A policy of these limits, refused without any or when two share a name.
    pub fn new(name: Name, limits: Vec<Limit>) -> Result<Self, PolicyError> {
        if limits.is_empty() {
            return Err(PolicyError::NoLimits);
        }
        for (index, limit) in limits.iter().enumerate() {
            if limits.iter().take(index).any(|earlier| earlier.name == limit.name) {
                return Err(PolicyError::DuplicateLimit(limit.name.clone()));
            }
        }
        Ok(Self { name, limits })
    }

    /// The policy's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The limits, at least one.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }
}

/// Why limits don't make a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A policy without limits would allow everything without saying so.
    #[error("a policy has at least one limit")]
    NoLimits,
    /// Two limits of one name would share a bucket.
    #[error("limit {0} is there twice: give each limit of a policy its own name")]
    DuplicateLimit(Name),
}
