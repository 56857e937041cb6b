//! Regular expressions that an operator wrote, for texts that a client did.

use regex_lite::{Regex, RegexBuilder};

/// A regular expression that a whole text must match. The engine never backtracks: its time is at most the pattern's size
/// times the text's.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    regex: Regex,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Too long to be read by anybody.
    #[error("a regular expression has at most {} bytes", Pattern::MAX_BYTES)]
    TooLong,
    /// Not in the syntax, or too large once its repetitions are counted out.
    #[error("{0}")]
    Syntax(String),
}

impl Pattern {
    /// The longest pattern, in bytes.
    pub const MAX_BYTES: usize = 512;
    /// The largest compiled pattern, in bytes. The worst that fits (`.*a.{70}`) is some 1.5 µs of work for each byte of
    /// the text, usual ones a tenth of that.
    const MAX_COMPILED_BYTES: usize = 4096;
    /// The longest text that is matched, in bytes; most servers take no longer path or header either. A proxy takes 60 kB
    /// by default, of which a path may become three times as much in its normal form.
    pub(crate) const MAX_TEXT_BYTES: usize = 8192;

    /// A pattern, refused when matching could take long.
    pub fn new(text: &str, ignore_case: bool) -> Result<Self, PatternError> {
        if text.len() > Self::MAX_BYTES {
            return Err(PatternError::TooLong);
        }
        let build = |text: &str| {
            let mut builder = RegexBuilder::new(text);
            builder.size_limit(Self::MAX_COMPILED_BYTES).case_insensitive(ignore_case).dot_matches_new_line(true);
            builder.build().map_err(|error| PatternError::Syntax(error.to_string()))
        };
        // Alone first: `a)|(b` is well-formed only in the brackets that make it match whole texts.
        build(text)?;
        let regex = build(&format!(r"\A(?:{text})\z"))?;
        Ok(Self { text: text.to_owned(), regex })
    }

    /// Whether the whole text matches; none when it is too long to be matched while others wait.
    pub(crate) fn matches(&self, text: &str) -> Option<bool> {
        (text.len() <= Self::MAX_TEXT_BYTES).then(|| self.regex.is_match(text))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(Pattern::new(pattern, false).unwrap().matches(text), Some(expected), "{pattern} {text}");
    }

    #[test]
    fn the_whole_text_must_match() {
        check("/v[0-9]+/users", "/v1/users", true);
        check("/v[0-9]+/users", "/v1/users/2", false);
        check("/v[0-9]+/users", "/x/v1/users", false);
        check("a|b", "ab", false);
        check("a.c", "a\nc", true);
        check("a", "a\n", false);
        check("", "", true);
        assert_eq!(Pattern::new("/login", true).unwrap().matches("/LogIn"), Some(true));
    }

    #[test]
    fn what_is_no_pattern_or_a_large_one_is_refused() {
        for bad in ["(", "a)|(b", "[", "a{2,1}", "\\", "(?x)a #", "a{1000}", ".{100}{100}", &"a".repeat(513)] {
            assert!(Pattern::new(bad, false).is_err(), "{bad}");
        }
    }

    /// What makes other engines take exponential or quadratic time. Bounded by steps, not by a clock: such a text would
    /// not end within anybody's patience.
    #[test]
    fn no_text_takes_long() {
        let long = "a".repeat(Pattern::MAX_TEXT_BYTES);
        assert_eq!(Pattern::new("a*", false).unwrap().matches(&format!("{long}a")), None);
        for pattern in ["(?:a*)*b", "(?:a|a)*b", "(?:a+)+b", ".*a.{20}b", "(?:.*a){5}b", "(?:a?){9}a{9}b", "(a|aa)+b"] {
            check(pattern, &long, false);
        }
    }
}
