//! How long the filter waits for the service.

use std::{num::NonZeroU32, str::FromStr, time::Duration};

/// A whole number of milliseconds from 1 to 60,000. A proxy reads anything under 1 ms as "no timeout", so zero has no
/// representation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeout(NonZeroU32);

impl Timeout {
    /// 25 ms: what a rule gets when neither it nor `service` says anything.
    pub const DEFAULT: Self = Self(NonZeroU32::MIN.saturating_add(24));
    /// The longest timeout, in ms.
    pub const MAX_MS: u32 = 60_000;
    /// Kept back from the service, in ms, so that its answer at the last moment still arrives in time.
    const MARGIN_MS: u32 = 2;

    /// A timeout of `ms` milliseconds.
    pub fn from_ms(ms: u32) -> Result<Self, TimeoutError> {
        NonZeroU32::new(ms).filter(|ms| ms.get() <= Self::MAX_MS).map(Self).ok_or(TimeoutError)
    }

    /// The timeout in ms.
    #[must_use]
    pub const fn ms(self) -> u32 {
        self.0.get()
    }

    /// The timeout as a duration, never under 1 ms.
    #[must_use]
    pub fn duration(self) -> Duration {
        Duration::from_millis(self.ms().into())
    }

    /// What the service is told that it has, in ms: 2 less, at least 1.
    #[must_use]
    pub fn service_ms(self) -> u32 {
        self.ms().saturating_sub(Self::MARGIN_MS).max(1)
    }
}

impl Default for Timeout {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a text is not a timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a timeout is a whole number of ms or s, from 1ms to 60s, such as 25ms or 1s")]
pub struct TimeoutError;

impl FromStr for Timeout {
    type Err = TimeoutError;

    fn from_str(text: &str) -> Result<Self, TimeoutError> {
        let (digits, unit_ms) = if let Some(digits) = text.strip_suffix("ms") {
            (digits, 1)
        } else {
            (text.strip_suffix('s').ok_or(TimeoutError)?, 1000)
        };
        // `u32::from_str` alone would take a leading `+`.
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(TimeoutError);
        }
        let number: u32 = digits.parse().map_err(|_| TimeoutError)?;
        Self::from_ms(number.checked_mul(unit_ms).ok_or(TimeoutError)?)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(text: &str, expected_ms: Option<u32>) {
        assert_eq!(text.parse::<Timeout>().ok().map(Timeout::ms), expected_ms, "{text:?}");
    }

    #[test]
    fn whole_milliseconds_and_seconds_are_timeouts() {
        check("1ms", Some(1));
        check("25ms", Some(25));
        check("1s", Some(1000));
        check("60s", Some(60_000));
    }

    #[test]
    fn anything_that_could_mean_no_timeout_is_refused() {
        for text in ["", "ms", "s", "0ms", "0s", "0.5ms", "25", "25 ms", "+1ms", "-1ms", "1m", "61s", "99999999999s"] {
            check(text, None);
        }
    }

    #[test]
    fn the_service_gets_two_milliseconds_less_but_never_none() {
        for (ms, left) in [(1, 1), (2, 1), (3, 1), (4, 2), (25, 23), (60_000, 59_998)] {
            assert_eq!(Timeout::from_ms(ms).unwrap().service_ms(), left, "{ms} ms");
        }
        assert_eq!(Timeout::DEFAULT.ms(), 25);
    }
}
