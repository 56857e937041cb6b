//! Conditions on a request's headers.

use crate::{HeaderName, doubt::Doubt, pattern::Pattern, view::View};

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

impl HeaderMatch {
    /// Of a header that was sent several times one line must be as the condition says, so that a second line is no way
    /// out of a rule's limits; under a rule that exempts all of them, so that it is no way into the exemption.
    pub(crate) fn matches(&self, view: &View<'_>, doubt: &Doubt) -> bool {
        let mut values = view.request().headers().all(self.name.as_str()).peekable();
        let there = values.peek().is_some();
        let mut some = |is: &dyn Fn(&[u8]) -> bool| there && if doubt.limits { values.any(is) } else { values.all(is) };
        match &self.is {
            HeaderIs::Present => there,
            HeaderIs::Absent => !there,
            HeaderIs::Equal(expected) => some(&|value| value == expected.as_bytes()),
            // Bytes that are not UTF-8 are characters that no pattern names, but `.` takes.
            HeaderIs::Like(pattern) => some(&|value| doubt.settle(pattern.matches(&String::from_utf8_lossy(value)))),
        }
    }
}
