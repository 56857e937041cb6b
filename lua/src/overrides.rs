//! `lua/override.lua`: numbers of a subject's own.

mod stored;

use std::fmt::Write as _;

use sluicegate_wire::Name;

use crate::{Call, Keys, MAX_FILL_MS, Policy, Rule, script::OVERRIDE};

pub use stored::{OwnNumbers, StoredOverride};

/// Other numbers for some limits of a policy, checked as the policy's own are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    text: String,
    lasts_ms: u64,
}

impl Override {
    /// These rules in place of the policy's of the same names, each of the same kind and refill mode. It ends after
    /// `lasts_ms`; without an end it lives as long as it is used at least every 366 days.
    pub fn new(policy: &Policy, rules: &[(Name, Rule)], lasts_ms: Option<u64>) -> Result<Self, OverrideError> {
        if !policy.overrides() {
            return Err(OverrideError::NotAllowed(policy.name().clone()));
        }
        if rules.is_empty() {
            return Err(OverrideError::NoLimits);
        }
        if lasts_ms.is_some_and(|ms| ms == 0 || ms > MAX_FILL_MS) {
            return Err(OverrideError::Lasts);
        }
        let mut text = String::from(if lasts_ms.is_none() { "keep\n" } else { "\n" });
        for (name, rule) in rules {
            let limit = policy.limits().iter().find(|limit| limit.name == *name);
            let limit = limit.ok_or_else(|| OverrideError::UnknownLimit(name.clone()))?;
            // Writing to a String can't fail.
            let _ = match (&limit.rule, rule) {
                (Rule::Bucket(old), Rule::Bucket(new)) if old.mode() == new.mode() => {
                    let mode = new.mode().letter();
                    writeln!(text, "{name} {mode} {} {} {}", new.capacity(), new.refill(), new.per_ms())
                }
                (Rule::Quota(old), Rule::Quota(new)) if *new == old.with_quota(new.quota()) => {
                    writeln!(text, "{name} q {}", new.quota())
                }
                _ => return Err(OverrideError::OtherKind(name.clone())),
            };
        }
        Ok(Self { text, lasts_ms: lasts_ms.unwrap_or(MAX_FILL_MS) })
    }

    /// The call that stores it.
    #[must_use]
    pub fn call(&self, keys: &Keys) -> Call {
        Call {
            script: &OVERRIDE,
            keys: vec![keys.overrides()],
            args: vec![self.text.clone(), self.lasts_ms.to_string()],
        }
    }

    /// The call that takes a subject's override away.
    #[must_use]
    pub fn removal(keys: &Keys) -> Call {
        Call { script: &OVERRIDE, keys: vec![keys.overrides()], args: vec![String::new(), String::new()] }
    }
}

/// Why numbers don't make an override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// The script would not read it.
    #[error("policy {0} does not allow overrides: set overrides: true")]
    NotAllowed(Name),
    /// It would change nothing.
    #[error("an override has at least one limit")]
    NoLimits,
    /// No such limit in the policy.
    #[error("the policy has no limit {0}")]
    UnknownLimit(Name),
    /// A bucket in place of a quota, another refill mode, or another calendar.
    #[error("limit {0} counts in another way: an override changes numbers only")]
    OtherKind(Name),
    /// An end in the past or too far off.
    #[error("an override lasts from 1 ms to 366 days")]
    Lasts,
}
