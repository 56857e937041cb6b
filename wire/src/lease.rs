//! `POST /v1/lease`: a batch of tokens for a proxy to give out itself.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::{LimitResult, Subject};

/// The body of `POST /v1/lease`: as many tokens as there are, up to `max`, taken at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseRequest {
    /// The policy's name: one with a single bucket and without a ban.
    pub policy: String,
    /// Who is limited.
    pub key: Subject,
    /// The most tokens wanted.
    pub max: LeaseTokens,
    /// How long the caller will hold them, in ms; after that it gives back what is left.
    pub for_ms: LeaseMs,
}

/// The body of a 200 answer to `POST /v1/lease`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LeaseAnswer {
    /// Tokens that were taken: 0 where there are none.
    pub granted: u64,
    /// What the policy's limit says after that; of no token, why and how long.
    pub result: LimitResult,
    /// Without a token: how long a proxy may deny the same subject from memory, in ms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deny_cache_ms: Option<u64>,
}

/// Tokens of one lease.
///
/// At most 100,000: a proxy that serves 50,000 requests a second for one subject leases for 2 s with that. More would
/// only let a mistake empty a bucket.
pub type LeaseTokens = Bounded<100_000>;

/// The time of one lease in ms, at most a minute: what is admitted is shifted by so much, and what a proxy loses with
/// it is away for longer than that anyway.
pub type LeaseMs = Bounded<60_000>;

/// A whole number from 1 to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MAX: u64>(u64);

/// Why a number is out of bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be a whole number from 1 to {max}")]
pub struct BoundedError {
    max: u64,
}

impl<const MAX: u64> Bounded<MAX> {
    /// The largest.
    pub const MAX: u64 = MAX;

    /// The number, refused when out of bounds.
    pub fn new(number: u64) -> Result<Self, BoundedError> {
        if (1..=MAX).contains(&number) { Ok(Self(number)) } else { Err(BoundedError { max: MAX }) }
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl<'de, const MAX: u64> Deserialize<'de> for Bounded<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(BoundedVisitor::<MAX>)
    }
}

struct BoundedVisitor<const MAX: u64>;

impl<const MAX: u64> de::Visitor<'_> for BoundedVisitor<MAX> {
    type Value = Bounded<MAX>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a whole number from 1 to {MAX}")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Bounded<MAX>, E> {
        Bounded::new(number).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Bounded<MAX>, E> {
        self.visit_u64(u64::try_from(number).unwrap_or(0))
    }

    /// Some JSON writers print whole numbers as `1.0`; anything with a fraction is refused.
    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Bounded<MAX>, E> {
        self.visit_u64(if number.fract() == 0.0 { number as u64 } else { 0 })
    }
}

#[cfg(feature = "openapi")]
impl<const MAX: u64> utoipa::PartialSchema for Bounded<MAX> {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(MAX))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl<const MAX: u64> utoipa::ToSchema for Bounded<MAX> {
    fn name() -> std::borrow::Cow<'static, str> {
        format!("From1To{MAX}").into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<u64>) {
        let parsed = serde_json::from_str::<LeaseTokens>(json).ok().map(LeaseTokens::get);
        assert_eq!(parsed, expected, "{json}");
    }

    #[test]
    fn whole_numbers_within_the_bounds_are_read() {
        for (json, number) in [("1", 1), ("50.0", 50), ("100000", 100_000)] {
            check(json, Some(number));
        }
        for json in ["0", "-1", "0.5", "1.5", "100001", "1e300", "-1e300", "\"1\"", "null"] {
            check(json, None);
        }
        let error = serde_json::from_str::<LeaseMs>("60001").unwrap_err().to_string();
        assert!(error.starts_with("must be a whole number from 1 to 60000"), "{error}");
    }
}
