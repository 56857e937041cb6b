//! What can't be told of a request is read for the stricter side, since whoever sends it can bring the doubt about.

use std::cell::Cell;

/// How one rule reads what is in doubt.
#[derive(Debug)]
pub(crate) struct Doubt {
    /// Whether the rule has limits: then doubt is a match, and under a rule that exempts it is none.
    pub(crate) limits: bool,
    matched: Cell<bool>,
}

impl Doubt {
    pub(crate) const fn under(limits: bool) -> Self {
        Self { limits, matched: Cell::new(false) }
    }

    /// A condition's answer; none when it can't be told.
    pub(crate) fn settle(&self, answer: Option<bool>) -> bool {
        answer.unwrap_or_else(|| {
            self.matched.set(self.limits);
            self.limits
        })
    }

    /// Whether the rule matched in doubt. Then the rules below have their say as well: it may hide the one that is meant.
    pub(crate) fn matched(&self) -> bool {
        self.matched.get()
    }
}
