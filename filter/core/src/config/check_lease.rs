//! `lease`, from as written to as applied.

use sluicegate_wire::{LeaseMs, LeaseTokens};

use super::{ConfigError, place::Place, raw_lease::RawLease};
use crate::{CostChoice, Lease};

/// `charged` says whether the rule gives back by the response's status.
pub(super) fn lease(place: &Place<'_>, raw: &RawLease, cost: &CostChoice, charged: bool) -> Result<Lease, ConfigError> {
    if charged {
        let problem = "what is leased is not given back by a response's status: take lease or the rule's charge off";
        return Err(place.wrong(problem));
    }
    if cost.most().tokens() > raw.tokens.0 {
        let problem = format!("at least the most that a request costs, which is {}", cost.most().tokens());
        return Err(place.field("tokens").wrong(problem));
    }
    let tokens = LeaseTokens::new(raw.tokens.0).map_err(|error| place.field("tokens").wrong(error.to_string()))?;
    let for_ms = LeaseMs::new(raw.time.ms()).ok().filter(|for_ms| for_ms.get() >= Lease::MIN_FOR_MS);
    let for_ms = for_ms.ok_or_else(|| place.field("for").wrong("a lease lasts from 500ms to 60s"))?;
    Ok(Lease { tokens, for_ms })
}
