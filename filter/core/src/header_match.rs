//! Conditions on a request's headers.

use crate::{HeaderName, Headers, pattern::Pattern};

/// A condition on the lines of one header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderMatch {
    /// The header.
    pub name: HeaderName,
    /// What must be true of it.
    pub is: HeaderIs,
}

/// What must be true of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderIs {
    /// It is there.
    Present,
    /// It is not there.
    Absent,
    /// Its value is this.
    Equal(String),
    /// Its whole value matches.
    Like(Pattern),
}

/// Of a header that was sent several times, which lines must be as the condition says. Any sender can add a line, so each
/// rule takes the answer that limits more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// One of them: a second line is no way out of a rule's limits.
    Any,
    /// All of them: a second line is no way into an exemption.
    All,
}

impl HeaderMatch {
    pub(crate) fn matches(&self, headers: &Headers, lines: Lines) -> bool {
        let mut values = headers.all(self.name.as_str()).peekable();
        let there = values.peek().is_some();
        let mut some = |is: &dyn Fn(&[u8]) -> bool| {
            there
                && match lines {
                    Lines::Any => values.any(is),
                    Lines::All => values.all(is),
                }
        };
        match &self.is {
            HeaderIs::Present => there,
            HeaderIs::Absent => !there,
            HeaderIs::Equal(expected) => some(&|value| value == expected.as_bytes()),
            // Bytes that are not UTF-8 are characters that no pattern names, but `.` takes.
            HeaderIs::Like(pattern) => some(&|value| pattern.matches(&String::from_utf8_lossy(value))),
        }
    }
}
