//! Durations of the configuration that are not timeouts.

use std::{num::NonZeroU64, str::FromStr};

/// A whole number of milliseconds, from 1 ms to 366 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(NonZeroU64);

impl Span {
    /// 1 s.
    pub const SECOND: Self = Self(NonZeroU64::MIN.saturating_add(999));
    /// The longest, in ms: 366 days.
    pub const MAX_MS: u64 = 366 * 86_400_000;

    /// A duration of `ms` milliseconds.
    pub fn from_ms(ms: u64) -> Result<Self, SpanError> {
        NonZeroU64::new(ms).filter(|ms| ms.get() <= Self::MAX_MS).map(Self).ok_or(SpanError)
    }

    /// The duration in ms.
    #[must_use]
    pub const fn ms(self) -> u64 {
        self.0.get()
    }
}

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a duration is a whole number of ms, s, m, h or d, from 1ms to 366d, such as 500ms or 1m")]
pub struct SpanError;

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let at = text.find(|character: char| !character.is_ascii_digit()).ok_or(SpanError)?;
        let (digits, unit) = text.split_at_checked(at).ok_or(SpanError)?;
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(SpanError),
        };
        let number: u64 = digits.parse().map_err(|_| SpanError)?;
        Self::from_ms(number.checked_mul(unit_ms).ok_or(SpanError)?)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(text: &str, expected_ms: Option<u64>) {
        assert_eq!(text.parse::<Span>().ok().map(Span::ms), expected_ms, "{text:?}");
    }

    #[test]
    fn whole_numbers_of_a_unit_are_durations() {
        check("1ms", Some(1));
        check("1s", Some(Span::SECOND.ms()));
        check("15m", Some(900_000));
        check("366d", Some(Span::MAX_MS));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "1", "ms", "0s", "1.5s", "-1s", "+1s", "1 s", "1w", "367d", "99999999999999999999s", "1é"] {
            check(text, None);
        }
    }
}
