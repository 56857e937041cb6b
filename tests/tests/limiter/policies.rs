//! Policies in few words.

use std::sync::Arc;

use sluicegate_lua::{Bucket, Every, Limit, Policy, Quota, Refill, Rule};

pub(crate) const HOUR_MS: u64 = 3_600_000;
pub(crate) const DAY_MS: u64 = 24 * HOUR_MS;

pub(crate) fn greedy(capacity: u64, refill: u64, per_ms: u64) -> Rule {
    Bucket::new(capacity, refill, per_ms, Refill::Greedy).unwrap().into()
}

pub(crate) fn interval(capacity: u64, refill: u64, per_ms: u64) -> Rule {
    Bucket::new(capacity, refill, per_ms, Refill::Interval).unwrap().into()
}

/// A quota a day, in a time zone whose midnight is far from now.
pub(crate) fn daily(quota: u64, now_ms: u64) -> Rule {
    let zone = if (HOUR_MS..DAY_MS - HOUR_MS).contains(&(now_ms % DAY_MS)) { "UTC" } else { "Asia/Tokyo" };
    Quota::new(quota, Every::Day, zone).unwrap().into()
}

pub(crate) fn limits(limits: &[(&str, Rule)]) -> Policy {
    let limit = |(name, rule): &(&str, Rule)| Limit { name: name.parse().unwrap(), rule: rule.clone() };
    Policy::new("p".parse().unwrap(), limits.iter().map(limit).collect()).unwrap()
}

/// A policy of these limits.
pub(crate) fn policy(named: &[(&str, Rule)]) -> Arc<Policy> {
    Arc::new(limits(named))
}

/// A policy of one limit, `burst`.
pub(crate) fn one(rule: Rule) -> Arc<Policy> {
    policy(&[("burst", rule)])
}
