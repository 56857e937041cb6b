//! A figure, the goal that it is held to, and how both are shown.

use std::fmt;

use crate::{rounds::Spread, rows::Row};

/// What a ratio should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Goal {
    /// At least this.
    AtLeast(f64),
    /// At least the first; the second would be better.
    Stretch(f64, f64),
    /// At most this.
    AtMost(f64),
    /// Below this.
    Below(f64),
    /// Nothing: it is only told.
    None,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Reached,
    Missed,
    Told,
    Unscored,
}

/// One line of the results.
#[derive(Clone, Debug)]
pub(crate) enum Line {
    /// What was measured.
    Figure(Figure),
    /// What wasn't, and why.
    Skipped { row: Row, scenario: String, why: String },
    /// What went wrong.
    Failed { row: Row, why: String },
}

/// A ratio.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    row: Row,
    scenario: String,
    beside: String,
    ratio: Spread,
    goal: Goal,
    ours: String,
    theirs: String,
    blurred: bool,
}

impl Figure {
    /// A ratio of `scenario` to `beside`, with both in figures of this machine.
    pub(crate) fn new(
        row: Row,
        scenario: impl Into<String>,
        beside: impl Into<String>,
        ratio: Spread,
        goal: Goal,
    ) -> Self {
        let (scenario, beside) = (scenario.into(), beside.into());
        Self { row, scenario, beside, ratio, goal, ours: String::new(), theirs: String::new(), blurred: false }
    }

    /// What the two are on this machine.
    pub(crate) fn of(mut self, ours: impl fmt::Display, theirs: impl fmt::Display) -> Self {
        (self.ours, self.theirs) = (ours.to_string(), theirs.to_string());
        self
    }

    /// Not held to its goal: what it is compared with is itself hardly more than noise.
    pub(crate) const fn blurred(mut self, blurred: bool) -> Self {
        self.blurred = blurred;
        self
    }

    fn outcome(&self) -> Outcome {
        let ratio = self.ratio.median;
        let reached = match self.goal {
            Goal::None => return Outcome::Told,
            _ if self.blurred => return Outcome::Unscored,
            Goal::AtLeast(least) | Goal::Stretch(least, _) => ratio >= least,
            Goal::AtMost(most) => ratio <= most,
            Goal::Below(bound) => ratio < bound,
        };
        if reached { Outcome::Reached } else { Outcome::Missed }
    }
}

impl Line {
    pub(crate) const fn row(&self) -> Row {
        match self {
            Self::Figure(figure) => figure.row,
            Self::Skipped { row, .. } | Self::Failed { row, .. } => *row,
        }
    }

    pub(crate) const fn is_failure(&self) -> bool {
        matches!(self, Self::Failed { .. })
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::Stretch(least, better) => write!(f, "≥ {least}, better {better}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
            Self::Below(bound) => write!(f, "< {bound}"),
            Self::None => f.write_str("–"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reached => "reached",
            Self::Missed => "**missed**",
            Self::Told => "–",
            Self::Unscored => "unscored",
        })
    }
}

/// A row of the table.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Figure(figure) => {
                let Figure { row, scenario, beside, ratio, goal, ours, theirs, .. } = figure;
                // Small ratios would show as 0.00.
                let digits = if ratio.median < 0.1 { 4 } else { 2 };
                let outcome = figure.outcome();
                write!(
                    f,
                    "| {row} | {scenario} | {beside} | {ratio:.digits$} | {goal} | {outcome} | {ours} | {theirs} |"
                )
            }
            Self::Skipped { row, scenario, why } => write!(f, "| {row} | {scenario} | | | | skipped: {why} | | |"),
            Self::Failed { row, why } => {
                let why = why.replace('|', "¦").lines().next().unwrap_or_default().to_owned();
                write!(f, "| {row} | | | | | **failed**: {why} | | |")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(goal: Goal, median: f64, expected: Outcome) {
        let figure = Figure::new(Row::A, "x", "y", Spread::of([median]), goal);
        assert_eq!(figure.outcome(), expected, "{goal}: {median}");
    }

    #[test]
    fn goals_are_reached_or_missed() {
        check(Goal::AtLeast(1.8), 1.8, Outcome::Reached);
        check(Goal::AtLeast(1.8), 1.79, Outcome::Missed);
        check(Goal::Stretch(1.35, 1.5), 1.4, Outcome::Reached);
        check(Goal::AtMost(0.5), 0.5, Outcome::Reached);
        check(Goal::AtMost(0.5), 0.51, Outcome::Missed);
        check(Goal::Below(2.0), 2.0, Outcome::Missed);
        check(Goal::None, 0.0, Outcome::Told);
    }

    #[test]
    fn a_row_of_the_table() {
        let figure = Figure::new(Row::F, "scripts", "decisions", Spread::of([0.02, 0.03, 0.04]), Goal::AtMost(0.1));
        let line = Line::Figure(figure.of("1", "2"));
        assert_eq!(line.to_string(), "| f | scripts | decisions | 0.0300 (0.0200–0.0400) | ≤ 0.1 | reached | 1 | 2 |");
        let failed = Line::Failed { row: Row::A, why: "a|b\nc".to_owned() };
        assert_eq!(failed.to_string(), "| a | | | | | **failed**: a¦b | | |");
        assert!(failed.is_failure());
    }

    #[test]
    fn what_is_blurred_is_not_scored() {
        let figure = Figure::new(Row::H, "x", "y", Spread::of([2.0]), Goal::AtMost(0.9)).blurred(true);
        assert_eq!(figure.outcome(), Outcome::Unscored);
    }
}
