//! The numbers of an override: from those asked for to rules like the policy's, and from those stored to an answer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sluicegate_lua::{Bucket, Limit, OwnNumbers, Policy, Quota, Rule};
use sluicegate_wire::Name;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder,
        schema::{AdditionalProperties, Object},
    },
};

use crate::api::admin::{AdminError, whole};

/// Other numbers for a limit: what is left out stays as the policy has it now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Numbers {
    /// Of a bucket: the most tokens it holds.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_992_u64)]
    pub(crate) capacity: Option<u64>,
    /// Of a bucket: the tokens it gains in each `per_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_992_u64)]
    pub(crate) refill: Option<u64>,
    /// Of a bucket: the period of the refill, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    #[schema(minimum = 1, maximum = 31_622_400_000_u64)]
    pub(crate) per_ms: Option<u64>,
    /// Of a quota: the tokens of each window.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "whole::optional")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_u64)]
    pub(crate) quota: Option<u64>,
}

/// Numbers that a limit has for one subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[schema(as = OwnNumbers)]
pub(crate) enum NumbersView {
    /// A token bucket.
    Bucket {
        /// The most tokens it holds.
        capacity: u64,
        /// The tokens it gains in each `per_ms`, reduced where it refills all the time.
        refill: u64,
        /// The period of the refill, in ms.
        per_ms: u64,
        /// Whether it refills once a period rather than all the time.
        interval: bool,
    },
    /// A calendar quota.
    Quota {
        /// The tokens of each window.
        quota: u64,
    },
}

/// Rules of the policy's kinds with these numbers.
pub(super) fn rules(policy: &Policy, limits: &BTreeMap<String, Numbers>) -> Result<Vec<(Name, Rule)>, AdminError> {
    if limits.is_empty() {
        return Err(AdminError::NoLimits(known(policy)));
    }
    let rule = |(name, numbers): (&String, &Numbers)| {
        let limit = policy.limits().iter().find(|limit| limit.name.as_str() == name);
        let limit = limit.ok_or_else(|| AdminError::UnknownLimit {
            name: name.chars().take(Name::MAX_BYTES).collect(),
            known: known(policy),
        })?;
        Ok((limit.name.clone(), numbers.rule(limit)?))
    };
    limits.iter().map(rule).collect()
}

fn known(policy: &Policy) -> String {
    policy.limits().iter().map(|limit| limit.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl Numbers {
    fn rule(&self, limit: &Limit) -> Result<Rule, AdminError> {
        let name = &limit.name;
        match &limit.rule {
            Rule::Bucket(old) => {
                if self.quota.is_some() {
                    return Err(AdminError::QuotaOfBucket(name.clone()));
                }
                let capacity = self.capacity.unwrap_or_else(|| old.capacity());
                let (refill, per_ms) =
                    (self.refill.unwrap_or_else(|| old.refill()), self.per_ms.unwrap_or_else(|| old.per_ms()));
                let bucket = Bucket::new(capacity, refill, per_ms, old.mode());
                bucket.map(Rule::from).map_err(|error| AdminError::Bucket(name.clone(), error))
            }
            Rule::Quota(old) => {
                if self.capacity.or(self.refill).or(self.per_ms).is_some() {
                    return Err(AdminError::BucketOfQuota(name.clone()));
                }
                let quota = Quota::new(self.quota.unwrap_or_else(|| old.quota()), old.every(), old.zone());
                quota.map(Rule::from).map_err(|error| AdminError::Quota(name.clone(), error))
            }
        }
    }
}

impl From<OwnNumbers> for NumbersView {
    fn from(numbers: OwnNumbers) -> Self {
        match numbers {
            OwnNumbers::Bucket { capacity, refill, per_ms, interval } => {
                Self::Bucket { capacity, refill, per_ms, interval }
            }
            OwnNumbers::Quota(quota) => Self::Quota { quota },
        }
    }
}

/// At least one limit.
pub(super) fn limits_schema() -> Object {
    let numbers = AdditionalProperties::RefOr(Numbers::schema());
    ObjectBuilder::new().min_properties(Some(1)).additional_properties(Some(numbers)).build()
}
