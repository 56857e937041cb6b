//! Counts of decisions, by policy, limit and verdict.
//!
//! Labels come from configured names alone, so there are no more series than the configurations since the start have
//! limits. A check looks its policy up once; after that each count is one addition.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use sluicegate_lua::{Limit, Policy};
use sluicegate_wire::{Name, Reason};

use super::{ByVerdict, Verdict, latencies::Latencies};
use crate::config::Policies;

/// Counts the decisions of all policies; clones count together.
#[derive(Clone, Debug, Default)]
pub struct Decisions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    checks: Family<CheckLabels, Counter>,
    limits: Family<LimitLabels, Counter>,
    shadow: Family<LimitLabels, Counter>,
    leases: LeaseFamilies,
    abandoned: Counter,
    policies: RwLock<HashMap<Name, Arc<PolicyCounts>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabels {
    policy: String,
    verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PolicyLabels {
    policy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    policy: String,
    limit: String,
    verdict: &'static str,
}

/// The counts of one policy, as it is now.
#[derive(Debug)]
pub struct PolicyCounts {
    policy: Arc<Policy>,
    totals: Arc<PolicyTotals>,
    limits: Vec<ByVerdict<Counter>>,
    /// There with the first shadow check: most policies see none.
    shadow: OnceLock<Vec<ByVerdict<Counter>>>,
    shadow_family: Family<LimitLabels, Counter>,
    /// There with the first lease: proxies take none from most policies.
    leases: OnceLock<Leases>,
    lease_families: LeaseFamilies,
}

#[derive(Clone, Debug, Default)]
struct LeaseFamilies {
    requests: Family<CheckLabels, Counter>,
    tokens: Family<PolicyLabels, Counter>,
}

/// What is counted of one policy's leases.
#[derive(Debug)]
struct Leases {
    verdicts: ByVerdict<Counter>,
    tokens: Counter,
}

/// What is counted of the checks of one policy name, whatever its limits are.
#[derive(Debug)]
pub(crate) struct PolicyTotals {
    pub(crate) verdicts: ByVerdict<Counter>,
    pub(crate) latencies: Latencies,
}

impl Decisions {
    /// Makes the series of these policies; one that is not told of gets its own with its first check.
    pub fn know(&self, policies: &Policies) {
        for policy in policies.iter() {
            drop(self.of(policy));
        }
    }

    /// The counts of a policy.
    #[must_use]
    pub fn of(&self, policy: &Arc<Policy>) -> Arc<PolicyCounts> {
        let known = self.0.policies.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = known.get(policy.name()).filter(|counts| Arc::ptr_eq(&counts.policy, policy)) {
            return Arc::clone(counts);
        }
        drop(known);
        self.replace(policy)
    }

    /// A caller left before it was answered.
    pub(crate) fn abandoned(&self) {
        self.0.abandoned.inc();
    }

    /// What was counted of each policy since the start.
    pub(crate) fn totals(&self) -> Vec<(Name, Arc<PolicyTotals>)> {
        let known = self.0.policies.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().map(|(name, counts)| (name.clone(), Arc::clone(&counts.totals))).collect()
    }

    /// A policy that is new, or whose limits may be others since a reload: what was counted so far stays.
    fn replace(&self, policy: &Arc<Policy>) -> Arc<PolicyCounts> {
        let mut known = self.0.policies.write().unwrap_or_else(PoisonError::into_inner);
        let totals = match known.get(policy.name()) {
            Some(before) => Arc::clone(&before.totals),
            None => Arc::new(self.new_totals(policy)),
        };
        let limits = of_limits(&self.0.limits, policy);
        let counts = Arc::new(PolicyCounts {
            policy: Arc::clone(policy),
            totals,
            limits,
            shadow: OnceLock::new(),
            shadow_family: self.0.shadow.clone(),
            leases: OnceLock::new(),
            lease_families: self.0.leases.clone(),
        });
        known.insert(counts.policy.name().clone(), Arc::clone(&counts));
        counts
    }

    fn new_totals(&self, policy: &Policy) -> PolicyTotals {
        let counter = |verdict: Verdict| {
            let labels = CheckLabels { policy: policy.name().to_string(), verdict: verdict.as_str() };
            self.0.checks.get_or_create_owned(&labels)
        };
        PolicyTotals { verdicts: ByVerdict::new(counter), latencies: Latencies::default() }
    }

    /// Adds the counts to what Prometheus is told.
    pub(super) fn register(&self, registry: &mut Registry) {
        let Inner { checks, limits, shadow, leases, abandoned, .. } = &*self.0;
        registry.register("checks", "Enforced checks by policy and what they were answered", checks.clone());
        registry.register(
            "decisions",
            "What each limit of enforced checks said, whatever the other limits of the call did",
            limits.clone(),
        );
        registry.register("shadow_decisions", "What each limit of shadow checks said", shadow.clone());
        registry.register(
            "lease_requests",
            "Requests for leases by policy and what came of them",
            leases.requests.clone(),
        );
        registry.register("lease_tokens", "Tokens that proxies leased, in no count of checks", leases.tokens.clone());
        registry.register("abandoned_calls", "Calls whose caller left before the answer was there", abandoned.clone());
    }
}

impl PolicyCounts {
    /// A check was decided: what each of the policy's limits said, in their order, and how long the call took.
    pub fn decided(&self, shadow: bool, reasons: impl Iterator<Item = Reason>, took: Duration) {
        let limits = self.limits(shadow);
        let mut verdict = Verdict::Allowed;
        for (limit, reason) in limits.iter().zip(reasons) {
            let of_limit = reason.into();
            limit.of(of_limit).inc();
            verdict = verdict.max(of_limit);
        }
        self.checked(shadow, verdict, took);
    }

    /// A check got no decision.
    pub fn failed(&self, shadow: bool, took: Duration) {
        for limit in self.limits(shadow) {
            limit.of(Verdict::Failed).inc();
        }
        self.checked(shadow, Verdict::Failed, took);
    }

    /// A proxy asked for a lease, and got so many tokens.
    pub fn leased(&self, verdict: Verdict, tokens: u64) {
        let Leases { verdicts, tokens: all } = self.leases.get_or_init(|| {
            let policy = || self.policy.name().to_string();
            let LeaseFamilies { requests, tokens } = &self.lease_families;
            let counter = |verdict: Verdict| {
                requests.get_or_create_owned(&CheckLabels { policy: policy(), verdict: verdict.as_str() })
            };
            let tokens = tokens.get_or_create_owned(&PolicyLabels { policy: policy() });
            Leases { verdicts: ByVerdict::new(counter), tokens }
        });
        verdicts.of(verdict).inc();
        all.inc_by(tokens);
    }

    fn checked(&self, shadow: bool, verdict: Verdict, took: Duration) {
        if !shadow {
            self.totals.verdicts.of(verdict).inc();
            self.totals.latencies.observe(took);
        }
    }

    fn limits(&self, shadow: bool) -> &[ByVerdict<Counter>] {
        if shadow { self.shadow.get_or_init(|| of_limits(&self.shadow_family, &self.policy)) } else { &self.limits }
    }
}

fn of_limits(family: &Family<LimitLabels, Counter>, policy: &Policy) -> Vec<ByVerdict<Counter>> {
    let counters = |limit: &Limit| {
        ByVerdict::new(|verdict| {
            let (policy, limit) = (policy.name().to_string(), limit.name.to_string());
            family.get_or_create_owned(&LimitLabels { policy, limit, verdict: verdict.as_str() })
        })
    };
    policy.limits().iter().map(counters).collect()
}

#[cfg(test)]
mod tests;
