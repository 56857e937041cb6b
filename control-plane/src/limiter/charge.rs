//! The `charge` of an answer: what of it was charged, and in which window, so that only that is refunded.
//!
//! To callers it is opaque: for each limit of the distinct checks, in order, the begin in ms of the quota's window, `0`
//! for a bucket, `-` for a shadow check that took nothing; joined with dots.

use sluicegate_lua::{Level, Rule, Taken};

use super::{CheckError, plan::Plan};

/// For each distinct check the begin of each limit's window, or nothing where it was not charged.
#[derive(Debug)]
pub(super) struct Stamps(Vec<Option<Vec<u64>>>);

impl Stamps {
    /// Reads a refund's charge. It may be missing where the checks alone say it all: enforced ones, of buckets.
    pub(super) fn parse(charge: Option<&str>, plan: &Plan) -> Result<Self, CheckError> {
        let Some(charge) = charge else {
            let enough = !plan.needs_charge();
            return enough
                .then(|| Self(plan.charges().map(|_| Some(Vec::new())).collect()))
                .ok_or(CheckError::OtherCharge);
        };
        let mut words = charge.split('.');
        let of_limits = plan.charges().map(|charge| {
            let limits = charge.policy.limits().iter();
            limits.map(|limit| stamp_for(words.next()?, &limit.rule)).collect::<Option<Vec<Option<u64>>>>()
        });
        let stamps: Option<Vec<_>> = of_limits.collect();
        match stamps {
            Some(stamps) if words.next().is_none() => {
                // A check is charged on all of its limits or on none.
                Ok(Self(stamps.into_iter().map(|limits| limits.into_iter().collect()).collect()))
            }
            _ => Err(CheckError::OtherCharge),
        }
    }

    /// The stamps of each distinct check; none for those that took nothing.
    pub(super) fn of_charges(self) -> impl Iterator<Item = Option<Vec<u64>>> {
        self.0.into_iter()
    }
}

/// Reads one word: the outer option is whether it fits the limit, the inner one whether that was charged.
fn stamp_for(word: &str, rule: &Rule) -> Option<Option<u64>> {
    if word == "-" {
        return Some(None);
    }
    let stamp: u64 = word.parse().ok()?;
    ((stamp != 0) == matches!(rule, Rule::Quota(_))).then_some(Some(stamp))
}

/// The charge of an allowed call, the `nth` of those that were made together.
pub(super) fn stamp(plan: &Plan, taken: &Taken, nth: u64) -> String {
    let words = plan.places().zip(plan.charges()).flat_map(|(place, charge)| {
        let unit = taken.units.get(place.unit).filter(|unit| nth <= unit.granted);
        let levels = unit.and_then(|unit| unit.checks.get(place.charge)).map(|check| &check.levels);
        let stamp = move |limit| {
            levels
                .and_then(|levels| levels.get(limit))
                .map_or_else(|| "-".to_owned(), |level: &Level| level.stamp().to_string())
        };
        (0..charge.policy.limits().len()).map(stamp)
    });
    words.collect::<Vec<_>>().join(".")
}
