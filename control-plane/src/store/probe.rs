//! The take that shows that a server takes.

use std::sync::Arc;

use sluicegate_lua::{Bucket, Call, Charge, KeyPrefix, Limit, Policy, Refill, Take, Unit};
use sluicegate_wire::{Cost, Name};

/// How many keys the probes of a server alone take from by turns: in as many slots, should it be one of a cluster.
pub(super) const KEYS: u32 = 8;

/// A take like any other, from a bucket that is full again a ms later. Of each `number` in another slot; no policy has
/// its name's `!`.
pub(super) fn take(prefix: &KeyPrefix, number: u32) -> Call {
    let charges =
        policy().map(|policy| Charge { policy: Arc::new(policy), keys: prefix.probe_keys(number), cost: Cost::ONE });
    Take { takes: 1, units: vec![Unit { charges: charges.into_iter().collect(), enforced: true }] }.call(0)
}

/// Never none: the numbers are good.
fn policy() -> Option<Policy> {
    let bucket = Bucket::new(1_000, 1_000, 1, Refill::Greedy).ok()?;
    let name: Name = "probe".parse().ok()?;
    Policy::new(name.clone(), vec![Limit { name, rule: bucket.into() }]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_takes_from_one_bucket() {
        assert_eq!(take(&KeyPrefix::default(), 7).keys, ["sg:{!probe7}:probe"]);
    }
}
