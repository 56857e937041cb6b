//! Statistics of a few rounds.

use std::fmt;

/// The median of some measurements, and how far they lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The middle one; of an even number the mean of the two.
    pub(crate) median: f64,
    /// The least.
    pub(crate) least: f64,
    /// The most.
    pub(crate) most: f64,
}

impl Spread {
    /// Of at least one measurement; of none everything is 0.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(&least), Some(&most)) = (sorted.first(), sorted.last()) else {
            return Self { median: 0.0, least: 0.0, most: 0.0 };
        };
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Self { median, least, most }
    }

    /// Of one round's value over the other's, round by round: what slows the machine down slows both.
    pub(crate) fn of_ratios(ours: &[f64], theirs: &[f64]) -> Self {
        Self::of(ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs))
    }

    /// The distance between the least and the most.
    pub(crate) const fn width(&self) -> f64 {
        self.most - self.least
    }

    /// Whether the measurements lie so far apart that their median says little: it is under three times that distance.
    pub(crate) const fn is_blurred(&self) -> bool {
        self.median < 3.0 * self.width()
    }
}

/// `1.52 (1.40–1.61)`, with the formatter's precision, by default 2 digits.
impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        write!(f, "{:.digits$} ({:.digits$}–{:.digits$})", self.median, self.least, self.most)
    }
}

/// Which side takes which turn in a round: each round begins with another side.
pub(crate) fn turns(round: usize, sides: usize) -> impl Iterator<Item = usize> {
    (0..sides).map(move |turn| (round + turn) % sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { median: 2.0, least: 1.0, most: 3.0 });
        assert_eq!(Spread::of([4.0, 1.0, 2.0, 3.0]), Spread { median: 2.5, least: 1.0, most: 4.0 });
        assert_eq!(Spread::of([7.0]), Spread { median: 7.0, least: 7.0, most: 7.0 });
        assert_eq!(Spread::of([]), Spread { median: 0.0, least: 0.0, most: 0.0 });
    }

    #[test]
    fn ratios_are_taken_round_by_round() {
        // The machine slowed down in the second round: the ratio of medians would be 15/10.
        let spread = Spread::of_ratios(&[20.0, 10.0, 15.0], &[10.0, 5.0, 10.0]);
        assert_eq!(spread, Spread { median: 2.0, least: 1.5, most: 2.0 });
    }

    #[test]
    fn what_is_shown_has_its_spread() {
        let spread = Spread::of([1.0, 2.0, 4.0]);
        assert_eq!(spread.to_string(), "2.00 (1.00–4.00)");
        assert_eq!(format!("{spread:.0}"), "2 (1–4)");
    }

    #[test]
    fn wide_measurements_are_blurred() {
        assert!(Spread::of([1.0, 2.0, 4.0]).is_blurred());
        assert!(!Spread::of([9.0, 10.0, 11.0]).is_blurred());
    }

    #[test]
    fn each_side_has_one_turn_a_round_and_each_begins_once() {
        let rounds: Vec<Vec<usize>> = (0..3).map(|round| turns(round, 3).collect()).collect();
        assert_eq!(rounds, [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
    }
}
