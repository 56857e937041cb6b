//! All policies by name.

use std::{collections::HashMap, sync::Arc};

use sluicegate_lua::Policy;
use sluicegate_wire::Name;

use super::{RateLimitService, Version};

/// The policies that checks may name.
#[derive(Clone, Debug)]
pub struct Policies {
    by_name: HashMap<Name, Arc<Policy>>,
    rate_limit_service: RateLimitService,
    version: Version,
}

impl Policies {
    /// The policy of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.by_name.get(name)
    }

    /// All policies, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.by_name.values()
    }

    /// Which of them the descriptors of Envoy's rate limit filter are for.
    #[must_use]
    pub const fn rate_limit_service(&self) -> &RateLimitService {
        &self.rate_limit_service
    }

    /// The same policies for these descriptors too.
    #[must_use]
    pub fn with_rate_limit_service(self, rate_limit_service: RateLimitService) -> Self {
        let version = Version::of(self.by_name.values().map(|policy| &**policy), &rate_limit_service);
        Self { rate_limit_service, version, ..self }
    }

    /// What tells this set from one that limits otherwise.
    #[must_use]
    pub const fn version(&self) -> Version {
        self.version
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

/// Of two policies of one name, the later stays.
impl FromIterator<Policy> for Policies {
    fn from_iter<I: IntoIterator<Item = Policy>>(policies: I) -> Self {
        let by_name: HashMap<_, _> =
            policies.into_iter().map(|policy| (policy.name().clone(), Arc::new(policy))).collect();
        let rate_limit_service = RateLimitService::default();
        let version = Version::of(by_name.values().map(|policy| &**policy), &rate_limit_service);
        Self { by_name, rate_limit_service, version }
    }
}
