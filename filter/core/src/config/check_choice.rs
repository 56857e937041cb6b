//! Policies and costs, from as written to as applied.

use sluicegate_wire::Cost;

use super::{
    ConfigError,
    check_key::source,
    forms::Named,
    place::Place,
    raw_choice::{RawChosenCost, RawChosenPolicy, RawCost, RawPolicy},
};
use crate::{ByValue, CostChoice, Matcher, PolicyChoice};

pub(super) fn policy(place: &Place<'_>, raw: RawPolicy<'_>, matcher: &Matcher) -> Result<PolicyChoice, ConfigError> {
    let RawChosenPolicy { from, map, default } = match raw {
        RawPolicy::Fixed(name) => return Ok(PolicyChoice::Fixed(name)),
        RawPolicy::Chosen(raw) => raw,
    };
    let from = source(&place.field("from"), from, matcher)?;
    Ok(PolicyChoice::Chosen { from, map: by_value(map), default })
}

pub(super) fn cost(place: &Place<'_>, raw: Option<RawCost<'_>>, matcher: &Matcher) -> Result<CostChoice, ConfigError> {
    let RawChosenCost { from, map, max, min, default } = match raw {
        None => return Ok(CostChoice::Fixed(Cost::ONE)),
        Some(RawCost::Fixed(cost)) => return Ok(CostChoice::Fixed(cost)),
        Some(RawCost::Chosen(raw)) => raw,
    };
    let bounds = match (min.unwrap_or(Cost::ONE), max) {
        (least, Some(max)) if least > max => {
            return Err(place.field("max").wrong(format!("at least min, which is {}", least.tokens())));
        }
        (least, Some(max)) => Some((least, max)),
        (_, None) if min.is_some() => return Err(place.field("min").wrong("give max as well")),
        (_, None) if map.is_none() => {
            return Err(place.wrong("give map, or max for values that are numbers"));
        }
        (_, None) => None,
    };
    Ok(CostChoice::Chosen {
        from: source(&place.field("from"), from, matcher)?,
        map: by_value(map.unwrap_or_default()),
        bounds,
        default: default.unwrap_or(Cost::ONE),
    })
}

fn by_value<T>(map: Named<'_, T>) -> ByValue<T> {
    ByValue(map.0.into_iter().map(|(value, thing)| (value.to_owned(), thing)).collect())
}
