//! All policies by name.

use std::{collections::HashMap, sync::Arc};

use sluicegate_lua::Policy;
use sluicegate_wire::Name;

/// The policies that checks may name.
#[derive(Clone, Debug, Default)]
pub struct Policies(HashMap<Name, Arc<Policy>>);

impl Policies {
    /// The policy of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.0.get(name)
    }

    /// All policies, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.0.values()
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Of two policies of one name, the later stays.
impl FromIterator<Policy> for Policies {
    fn from_iter<I: IntoIterator<Item = Policy>>(policies: I) -> Self {
        Self(policies.into_iter().map(|policy| (policy.name().clone(), Arc::new(policy))).collect())
    }
}
