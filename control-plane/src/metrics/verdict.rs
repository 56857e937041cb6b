//! What became of a check, in a word.

use sluicegate_wire::Reason;

/// What a check was answered, or that it wasn't. In order of what counts when the limits of one check differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// Enough tokens.
    Allowed,
    /// Too few tokens now.
    OverLimit,
    /// The cost is more than the limit ever holds.
    Never,
    /// Denied too often a moment ago.
    Banned,
    /// The store gave no decision.
    Failed,
}

impl Verdict {
    /// Every verdict.
    pub const ALL: [Self; 5] = [Self::Allowed, Self::OverLimit, Self::Never, Self::Banned, Self::Failed];

    /// The word that metrics use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::OverLimit => "over_limit",
            Self::Never => "never",
            Self::Banned => "banned",
            Self::Failed => "failed",
        }
    }
}

impl From<Reason> for Verdict {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Ok => Self::Allowed,
            Reason::OverLimit => Self::OverLimit,
            Reason::Never => Self::Never,
            Reason::Banned => Self::Banned,
        }
    }
}

/// A value for each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByVerdict<T>([T; Verdict::ALL.len()]);

impl<T> ByVerdict<T> {
    /// Makes each value.
    pub fn new(value: impl FnMut(Verdict) -> T) -> Self {
        Self(Verdict::ALL.map(value))
    }

    /// The value of one.
    #[must_use]
    pub const fn of(&self, verdict: Verdict) -> &T {
        &self.0[verdict as usize]
    }

    /// The value of one, to change it.
    pub const fn of_mut(&mut self, verdict: Verdict) -> &mut T {
        &mut self.0[verdict as usize]
    }
}

impl ByVerdict<u64> {
    /// All together.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Those that were answered with no.
    #[must_use]
    pub const fn denied(&self) -> u64 {
        *self.of(Verdict::OverLimit) + *self.of(Verdict::Never) + *self.of(Verdict::Banned)
    }

    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        for verdict in Verdict::ALL {
            *self.of_mut(verdict) += other.of(verdict);
        }
    }
}
