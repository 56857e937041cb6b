//! Policies: limits under names, and what stands beside them.

use sluicegate_wire::Name;

use crate::{Bucket, MAX_FILL_MS, Quota};

/// One limit of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The limit's name: the last part of its key, so that a changed policy finds its counts again.
    pub name: Name,
    /// How it counts.
    pub rule: Rule,
}

/// How a limit counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// A token bucket.
    Bucket(Bucket),
    /// A calendar quota.
    Quota(Quota),
}

impl From<Bucket> for Rule {
    fn from(bucket: Bucket) -> Self {
        Self::Bucket(bucket)
    }
}

impl From<Quota> for Rule {
    fn from(quota: Quota) -> Self {
        Self::Quota(quota)
    }
}

/// Denies a subject for a time after many denials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ban {
    after: u64,
    within_ms: u64,
    for_ms: u64,
}

impl Ban {
    /// After `after` denials within `within_ms` of the first of them, denied for `for_ms`.
    pub fn new(after: u64, within_ms: u64, for_ms: u64) -> Result<Self, PolicyError> {
        let in_range = |ms: u64| (1..=MAX_FILL_MS).contains(&ms);
        if after == 0 || after >= 1 << 31 {
            return Err(PolicyError::BanAfter(after));
        }
        if !in_range(within_ms) {
            return Err(PolicyError::BanTime("within", within_ms));
        }
        if !in_range(for_ms) {
            return Err(PolicyError::BanTime("for", for_ms));
        }
        Ok(Self { after, within_ms, for_ms })
    }

    /// The denials it takes.
    #[must_use]
    pub const fn after(&self) -> u64 {
        self.after
    }

    /// The time from the first denial in which they count, in ms.
    #[must_use]
    pub const fn within_ms(&self) -> u64 {
        self.within_ms
    }

    /// How long it lasts, in ms.
    #[must_use]
    pub const fn for_ms(&self) -> u64 {
        self.for_ms
    }
}

/// A policy: one or more limits that a check takes from together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    name: Name,
    limits: Vec<Limit>,
    ban: Option<Ban>,
    overrides: bool,
}

impl Policy {
    /// The most limits of one policy.
    pub const MAX_LIMITS: usize = 16;

    /// A policy of these limits, refused without any or when two share a name.
    pub fn new(name: Name, limits: Vec<Limit>) -> Result<Self, PolicyError> {
        if limits.is_empty() {
            return Err(PolicyError::NoLimits);
        }
        if limits.len() > Self::MAX_LIMITS {
            return Err(PolicyError::TooManyLimits(limits.len()));
        }
        for (index, limit) in limits.iter().enumerate() {
            if limits.iter().take(index).any(|earlier| earlier.name == limit.name) {
                return Err(PolicyError::DuplicateLimit(limit.name.clone()));
            }
        }
        Ok(Self { name, limits, ban: None, overrides: false })
    }

    /// The policy with a ban.
    #[must_use]
    pub fn with_ban(self, ban: Ban) -> Self {
        Self { ban: Some(ban), ..self }
    }

    /// The policy with subjects allowed to have numbers of their own, at the price of one more read a check.
    #[must_use]
    pub fn with_overrides(self) -> Self {
        Self { overrides: true, ..self }
    }

    /// The policy's name.
    #[must_use]
    pub const fn name(&self) -> &Name {
        &self.name
    }

    /// The limits, at least one.
    #[must_use]
    pub fn limits(&self) -> &[Limit] {
        &self.limits
    }

    /// The ban, if it has one.
    #[must_use]
    pub const fn ban(&self) -> Option<&Ban> {
        self.ban.as_ref()
    }

    /// Whether a subject may have numbers of its own.
    #[must_use]
    pub const fn overrides(&self) -> bool {
        self.overrides
    }
}

/// Why limits don't make a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A policy without limits would allow everything without saying so.
    #[error("a policy has at least one limit")]
    NoLimits,
    /// Each limit is a key read in every check.
    #[error("{0} limits: a policy has at most 16")]
    TooManyLimits(usize),
    /// Two limits of one name would share a key.
    #[error("limit {0} is there twice: give each limit of a policy its own name")]
    DuplicateLimit(Name),
    /// A ban after no denial at all, or after more than anyone sends.
    #[error("ban.after is {0}: it must be from 1 to 2147483647 denials")]
    BanAfter(u64),
    /// A time that is nothing, or that nothing written is kept for.
    #[error("ban.{0} is {1} ms: it must be from 1 ms to 366 days")]
    BanTime(&'static str, u64),
}
