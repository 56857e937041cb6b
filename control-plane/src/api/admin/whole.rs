//! Whole numbers, which some JSON writers print as `1.0`.

use serde::{Deserialize, Deserializer, de};

/// A whole number up to 2^53, with or without a decimal point.
#[derive(Clone, Copy, Debug)]
struct Whole(u64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WholeVisitor)
    }
}

struct WholeVisitor;

impl de::Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a whole number from 0 to 9007199254740992")
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Whole, E> {
        if number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number) {
            return Ok(Whole(number as u64));
        }
        Err(E::invalid_value(de::Unexpected::Float(number), &self))
    }
}

/// For a field that has one.
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Whole::deserialize(deserializer).map(|whole| whole.0)
}

/// For a field that may have one.
pub(super) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<Whole>::deserialize(deserializer)?.map(|whole| whole.0))
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_whole_numbers_are_taken() {
        let read = |json| super::number(&mut serde_json::Deserializer::from_str(json)).ok();
        for (json, expected) in
            [("7", Some(7)), ("7.0", Some(7)), ("7.5", None), ("-1", None), ("-1.0", None), ("1e300", None)]
        {
            assert_eq!(read(json), expected, "{json}");
        }
        let optional = |json| super::optional(&mut serde_json::Deserializer::from_str(json)).ok();
        assert_eq!([optional("null"), optional("1.0"), optional("\"1\"")], [Some(None), Some(Some(1)), None]);
    }
}
