//! `on_failure`, from as written to as applied.

use super::{
    ConfigError, Limit,
    check_runtime::reject_status,
    forms::Whole,
    place::Place,
    raw_failure::{RawClosed, RawLocal, RawOnFailure},
};
use crate::{LocalLimit, OnFailure};

pub(super) fn on_failure(place: &Place<'_>, raw: &RawOnFailure, limits: &[Limit]) -> Result<OnFailure, ConfigError> {
    match raw {
        RawOnFailure::Open => Ok(OnFailure::Open),
        RawOnFailure::Closed(RawClosed { status }) => Ok(OnFailure::Closed { status: reject_status(*status) }),
        RawOnFailure::Local(local) => local_limit(&place.field("local"), local, limits).map(OnFailure::Local),
    }
}

fn local_limit(place: &Place<'_>, raw: &RawLocal, limits: &[Limit]) -> Result<LocalLimit, ConfigError> {
    let Whole(capacity) = raw.capacity;
    let slots = raw.slots.and_then(|slots| u32::try_from(slots.0).ok()).unwrap_or(LocalLimit::DEFAULT_SLOTS);
    let limit =
        LocalLimit::new(capacity, raw.refill.0, raw.per.ms(), slots).map_err(|error| place.wrong(error.to_string()))?;
    if limits.iter().any(|limit| limit.cost.most().tokens() > capacity) {
        let problem = "at least the cost of each limit of the rule, or none of its requests would ever pass";
        return Err(place.field("capacity").wrong(problem));
    }
    Ok(limit)
}
