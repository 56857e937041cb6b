//! The number of tokens one check takes.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

/// A whole number of tokens, from 0 (look without taking) to 2^53 − 1, the largest integer that Lua and JSON carry
/// exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// No token: looks without taking.
    pub const ZERO: Self = Self(0);
    /// One token: what a check costs when it says nothing.
    pub const ONE: Self = Self(1);
    /// The largest cost, 2^53 − 1 tokens.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// A cost of `tokens`, refused when over [`Cost::MAX`].
    pub const fn new(tokens: u64) -> Result<Self, CostError> {
        if tokens > Self::MAX.0 {
            return Err(CostError);
        }
        Ok(Self(tokens))
    }

    /// The cost in tokens.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.0
    }

    /// The sum of two costs, at most [`Cost::MAX`]: no bucket can hold that much, so it is denied either way.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        let sum = self.0.saturating_add(other.0);
        Self(if sum > Self::MAX.0 { Self::MAX.0 } else { sum })
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::ONE
    }
}

/// Why a number is not a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a cost is a whole number from 0 to 9007199254740991")]
pub struct CostError;

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(CostVisitor)
    }
}

struct CostVisitor;

impl de::Visitor<'_> for CostVisitor {
    type Value = Cost;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a whole number from 0 to {}", Cost::MAX.0)
    }

    fn visit_u64<E: de::Error>(self, tokens: u64) -> Result<Cost, E> {
        Cost::new(tokens).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, tokens: i64) -> Result<Cost, E> {
        u64::try_from(tokens).map_err(|_| E::custom(CostError)).and_then(|tokens| self.visit_u64(tokens))
    }

    /// Some JSON writers print whole numbers as `1.0`; anything with a fraction is refused.
    fn visit_f64<E: de::Error>(self, tokens: f64) -> Result<Cost, E> {
        if tokens.fract() == 0.0 && (0.0..=Cost::MAX.0 as f64).contains(&tokens) {
            return Ok(Cost(tokens as u64));
        }
        Err(E::custom(CostError))
    }
}

#[cfg(feature = "openapi")]
impl utoipa::PartialSchema for Cost {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::Type::Integer)
            .description(Some("Tokens; 0 looks without taking."))
            .minimum(Some(0))
            // Kept as an integer: as a float it would be written with an exponent.
            .maximum(Some(Self::MAX.0))
            .default(Some(1.into()))
            .into()
    }
}

#[cfg(feature = "openapi")]
impl utoipa::ToSchema for Cost {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Option<u64>) {
        let parsed = serde_json::from_str::<Cost>(json).ok().map(Cost::tokens);
        assert_eq!(parsed, expected, "{json}");
    }

    #[test]
    fn whole_numbers_up_to_two_to_the_53_are_costs() {
        check("0", Some(0));
        check("1", Some(1));
        check("1.0", Some(1));
        check("9007199254740991", Some(9_007_199_254_740_991));
    }

    #[test]
    fn anything_else_is_refused() {
        for json in
            ["-1", "-100", "1.5", "9007199254740992", "9007199254740993", "1e300", "\"1\"", "null", "true", "[]"]
        {
            check(json, None);
        }
    }

    #[test]
    fn sums_stop_at_the_largest_cost() {
        assert_eq!(Cost::MAX.saturating_add(Cost::ONE), Cost::MAX);
        assert_eq!(Cost::ONE.saturating_add(Cost::ONE).tokens(), 2);
    }
}
