//! The version of a set of policies: the same for all files that say the same, whatever their comments, their order and
//! the rest of the configuration.
//!
//! It is of what was understood rather than of the text, so that replicas whose files differ in a comment or a port
//! agree, and a version that changed means that something is limited otherwise.

use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};
use sluicegate_lua::{Policy, Refill, Rule};

use super::RateLimitService;

/// The first 6 bytes of a digest, shown as 12 hex digits: enough to tell the sets of one installation apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version([u8; 6]);

impl Version {
    /// The version of these policies, in any order, and of what Envoy's descriptors mean.
    pub(super) fn of<'a>(policies: impl Iterator<Item = &'a Policy>, service: &RateLimitService) -> Self {
        let mut lines: Vec<String> = policies.map(canonical).collect();
        lines.sort_unstable();
        lines.extend(service.canonical());
        let digest = Sha256::digest(lines.concat());
        let mut version = [0; 6];
        version.iter_mut().zip(digest).for_each(|(byte, digest)| *byte = digest);
        Self(version)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// Everything about a policy, in one form. Names have neither blanks nor line ends; the order of limits shows in answers.
fn canonical(policy: &Policy) -> String {
    let mut text = policy.name().to_string();
    for limit in policy.limits() {
        // A string takes all that is written to it, here and below.
        let _ = match &limit.rule {
            Rule::Bucket(bucket) => {
                let mode = match bucket.mode() {
                    Refill::Greedy => "greedy",
                    Refill::Interval => "interval",
                };
                let (capacity, refill, per_ms) = (bucket.capacity(), bucket.refill(), bucket.per_ms());
                write!(text, " limit {} bucket {capacity} {refill} {per_ms} {mode}", limit.name)
            }
            Rule::Quota(quota) => {
                let every = quota.every().as_str();
                write!(text, " limit {} quota {} {every} {}", limit.name, quota.quota(), quota.zone())
            }
        };
    }
    if let Some(ban) = policy.ban() {
        let _ = write!(text, " ban {} {} {}", ban.after(), ban.within_ms(), ban.for_ms());
    }
    if policy.overrides() {
        text.push_str(" overrides");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::Version;
    use crate::config::Config;

    const POLICIES: &str = "policies:
  a: { limits: [ { name: x, capacity: 2, refill: 1, per: 1m }, { name: y, quota: 5, every: day } ] }
  b: { limits: [ { name: x, capacity: 1, refill: 1, per: 1s } ], ban: { after: 2, within: 1m, for: 1h } }
";

    fn version(policies: &str) -> Version {
        let text = format!("store: {{ url: memory:// }}\n{policies}");
        Config::parse("f.yaml", &text, &|_| None).unwrap_or_else(|errors| panic!("{errors}")).policies.version()
    }

    #[test]
    fn what_means_the_same_has_the_same_version() {
        // It is compared between replicas of different releases, so it stays as it is.
        assert_eq!(version(POLICIES).to_string(), "2ccc65491f6b");
        let other = "drain: 1s
# Another order, other units, defaults written out.
policies:
  b:
    ban: { for: 60m, within: 60s, after: 2 }
    limits: [ { per: 1000ms, refill: 1, capacity: 1, name: x, interval: false } ]
    overrides: false
  a: { limits: [ { name: x, capacity: 2, refill: 1, per: 60s }, { name: y, quota: 5, every: day, time_zone: UTC } ] }
";
        assert_eq!(version(POLICIES), version(other));
    }

    #[test]
    fn whatever_descriptors_mean_otherwise_has_another_version() {
        let service = "rate_limit_service:
  domains:
    e: [ { match: [ { k: v }, u ], policy: a, key: [ u ] }, { match: [ u ], unlimited: true } ]
    f: []
";
        let written = format!("{POLICIES}{service}");
        assert_eq!(version(&written), version(&format!("{service}{POLICIES}")));
        for (before, otherwise) in [
            ("k: v", "k: w"),
            ("k: v", "l: v"),
            ("k: v", "k: 'v*'"),
            ("k: v", "k: '*'"),
            ("policy: a", "policy: b"),
            ("policy: a", "policy: a, shadow: true"),
            ("key: [ u ]", "key: [ k ]"),
            ("key: [ u ]", "key: [ k, u ]"),
            ("key: [ u ]", "key: [ { entry: u, secret: true } ]"),
            ("unlimited: true", "policy: a"),
            ("f: []", "g: []"),
            ("domains:", "unknown_domain: error\n  domains:"),
        ] {
            let changed = written.replacen(before, otherwise, 1);
            assert_ne!(changed, written, "{before}");
            assert_ne!(version(&changed), version(&written), "{otherwise}");
        }
    }

    #[test]
    fn whatever_limits_otherwise_has_another_version() {
        for (written, otherwise) in [
            ("a: {", "c: {"),
            ("name: x, capacity: 2", "name: z, capacity: 2"),
            ("capacity: 2", "capacity: 3"),
            ("refill: 1, per: 1m", "refill: 2, per: 1m"),
            ("per: 1m }", "per: 2m }"),
            ("per: 1m }", "per: 1m, interval: true }"),
            ("quota: 5", "quota: 6"),
            ("every: day", "every: week"),
            ("every: day", "every: day, time_zone: Europe/Paris"),
            ("after: 2", "after: 3"),
            ("within: 1m", "within: 2m"),
            ("for: 1h", "for: 2h"),
            ("for: 1h }", "for: 1h }, overrides: true"),
            ("policies:", "rate_limit_service: { domains: { e: [] } }\npolicies:"),
            (
                "{ name: x, capacity: 2, refill: 1, per: 1m }, { name: y, quota: 5, every: day }",
                "{ name: y, quota: 5, every: day }, { name: x, capacity: 2, refill: 1, per: 1m }",
            ),
        ] {
            let changed = POLICIES.replacen(written, otherwise, 1);
            assert_ne!(changed, POLICIES, "{written}");
            assert_ne!(version(&changed), version(POLICIES), "{otherwise}");
        }
    }
}
