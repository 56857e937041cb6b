//! Durations as people write them.

use std::time::Duration;

use sluicegate_lua::MAX_FILL_MS;

/// Why a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DurationError {
    #[error("needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m")]
    NotADuration,
    #[error("is not a whole number of milliseconds; round it")]
    NotWhole,
    #[error("is over 366d, the longest there is")]
    TooLong,
}

/// A duration of whole milliseconds, from 0 to 366 days: digits, optionally a decimal point and more digits, and one
/// of the units `ms`, `s`, `m`, `h`, `d` (24 hours).
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let number_ends = text.find(|character: char| character.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(number_ends);
    let unit_ms: u128 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(DurationError::NotADuration),
    };
    let (whole, fraction) = match number.split_once('.') {
        Some((_, "")) => return Err(DurationError::NotADuration),
        Some((whole, fraction)) => (whole, fraction.trim_end_matches('0')),
        None => (number, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(fraction) {
        return Err(DurationError::NotADuration);
    }
    // No unit needs more than 8 decimals (1 d is 86.4 million ms), and 18 digits can't overflow below.
    if fraction.len() > 9 {
        return Err(DurationError::NotWhole);
    }
    let whole = whole.trim_start_matches('0');
    if whole.len() > 18 {
        return Err(DurationError::TooLong);
    }
    let scale = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
    // Both are checked to be at most 18 digits; empty means 0.
    let number = |text: &str| text.parse::<u128>().unwrap_or(0);
    let scaled_ms = (number(whole) * scale + number(fraction)) * unit_ms;
    if !scaled_ms.is_multiple_of(scale) {
        return Err(DurationError::NotWhole);
    }
    match u64::try_from(scaled_ms / scale) {
        Ok(ms) if ms <= MAX_FILL_MS => Ok(Duration::from_millis(ms)),
        _ => Err(DurationError::TooLong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<u64, DurationError>) {
        assert_eq!(parse(text).map(|duration| duration.as_millis()), expected.map(u128::from), "{text:?}");
    }

    #[test]
    fn units() {
        check("0ms", Ok(0));
        check("20ms", Ok(20));
        check("1s", Ok(1_000));
        check("1m", Ok(60_000));
        check("1h", Ok(3_600_000));
        check("1d", Ok(86_400_000));
        check("366d", Ok(MAX_FILL_MS));
        check("0000000000000000000000001s", Ok(1_000));
    }

    #[test]
    fn decimals_that_come_out_as_whole_milliseconds() {
        check("1.5s", Ok(1_500));
        check("0.25m", Ok(15_000));
        check("1.0ms", Ok(1));
        check("0.001s", Ok(1));
        check("1.00000000000s", Ok(1_000));
        check("0.5ms", Err(DurationError::NotWhole));
        check("0.0001s", Err(DurationError::NotWhole));
        check("0.33333333333333333333333m", Err(DurationError::NotWhole));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in [
            "", "60", "s", "1 s", "1S", "1us", "1w", "-1s", "+1s", "1e3s", ".5s", "1.s", "1m30s", "1.5.5s", "١s", "1sé",
        ] {
            check(text, Err(DurationError::NotADuration));
        }
        check("367d", Err(DurationError::TooLong));
        check("99999999999999999999999999999999999999999d", Err(DurationError::TooLong));
        check("999999999999999999d", Err(DurationError::TooLong));
    }
}
