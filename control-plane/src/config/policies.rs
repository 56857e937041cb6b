//! All policies by name.

use std::{collections::HashMap, sync::Arc};

use sluicegate_lua::Policy;
use sluicegate_wire::Name;

use super::Version;

/// The policies that checks may name.
#[derive(Clone, Debug)]
pub struct Policies {
    by_name: HashMap<Name, Arc<Policy>>,
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
        let version = Version::of(by_name.values().map(|policy| &**policy));
        Self { by_name, version }
    }
}
