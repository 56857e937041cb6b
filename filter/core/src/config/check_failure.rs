//! `on_failure`, from as written to as applied.

use super::{
    ConfigError, Limit,
    check_runtime::{reject_status, whole},
    raw_failure::{RawClosed, RawLocal, RawOnFailure},
};
use crate::{LocalLimit, OnFailure, RejectStatus};

pub(super) fn on_failure(path: &str, raw: &RawOnFailure, limits: &[Limit]) -> Result<OnFailure, ConfigError> {
    match raw {
        RawOnFailure::Open => Ok(OnFailure::Open),
        RawOnFailure::Closed(RawClosed { status: None }) => {
            Ok(OnFailure::Closed { status: RejectStatus::TOO_MANY_REQUESTS })
        }
        RawOnFailure::Closed(RawClosed { status: Some(status) }) => {
            reject_status(&format!("{path}.closed.status"), *status).map(|status| OnFailure::Closed { status })
        }
        RawOnFailure::Local(local) => local_limit(&format!("{path}.local"), local, limits).map(OnFailure::Local),
    }
}

fn local_limit(path: &str, raw: &RawLocal, limits: &[Limit]) -> Result<LocalLimit, ConfigError> {
    let number = |field: &str, value| whole(&format!("{path}.{field}"), value, 1..=1 << 53);
    let slots = match raw.slots {
        Some(slots) => {
            let most = LocalLimit::MIN_SLOTS.into()..=LocalLimit::MAX_SLOTS.into();
            u32::try_from(whole(&format!("{path}.slots"), slots, most)?).unwrap_or(LocalLimit::MAX_SLOTS)
        }
        None => LocalLimit::DEFAULT_SLOTS,
    };
    let capacity = number("capacity", raw.capacity)?;
    let limit = LocalLimit::new(capacity, number("refill", raw.refill)?, raw.per.ms(), slots)
        .map_err(|error| ConfigError::field(path, error.to_string()))?;
    if limits.iter().any(|limit| limit.cost.tokens() > capacity) {
        let problem = "at least the cost of each limit of the rule, or none of its requests would ever pass";
        return Err(ConfigError::field(format!("{path}.capacity"), problem));
    }
    Ok(limit)
}
