//! Who comes most often, in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi 2005).

/// Subjects that one sketch counts.
pub(super) const COUNTERS: usize = 128;

/// Counts of the most frequent subjects. A subject that is not there came at most [`Sketch::least`] times, and no count
/// is too large by more than its error; both are at most the total divided by [`COUNTERS`].
///
/// Counters stand in no order and are searched from the first to the last: of 128 that takes less time than keeping them
/// in one, and nothing is kept beside them.
#[derive(Debug, Default)]
pub(super) struct Sketch {
    /// Of each counter's subject, side by side so that the search goes over one kB.
    hashes: Vec<u64>,
    counts: Vec<u64>,
    /// How much of each count may be others' whose counter this was before.
    errors: Vec<u64>,
    subjects: Vec<Box<str>>,
    total: u64,
}

impl Sketch {
    /// Counts a subject so often. Equal subjects must have equal hashes.
    pub(super) fn add(&mut self, hash: u64, subject: &str, times: u64) {
        self.total += times;
        let known = self.hashes.iter().position(|known| *known == hash);
        // A subject whose hash another one has is counted with it, once in some 10^17 pairs.
        if let Some(at) = known {
            self.counts[at] += times;
        } else if self.hashes.len() < COUNTERS {
            self.hashes.push(hash);
            self.counts.push(times);
            self.errors.push(0);
            self.subjects.push(subject.into());
        } else if let Some((at, least)) = self.counts.iter().copied().enumerate().min_by_key(|(_, count)| *count) {
            self.hashes[at] = hash;
            self.counts[at] = least + times;
            self.errors[at] = least;
            self.subjects[at] = subject.into();
        }
    }

    /// How often subjects without a counter came at most.
    pub(super) fn least(&self) -> u64 {
        if self.counts.len() < COUNTERS { 0 } else { self.counts.iter().copied().min().unwrap_or(0) }
    }

    /// How many were counted in all.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Each subject with its count, and how much less it may be.
    pub(super) fn counted(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let numbers = self.counts.iter().zip(&self.errors);
        self.subjects.iter().zip(numbers).map(|(subject, (count, error))| (&**subject, *count, *error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn filled(subjects: impl Iterator<Item = u64>) -> (Sketch, HashMap<String, u64>) {
        let (mut sketch, mut exact) = (Sketch::default(), HashMap::new());
        for subject in subjects {
            let name = format!("s{subject}");
            sketch.add(subject, &name, 1);
            *exact.entry(name).or_insert(0) += 1;
        }
        (sketch, exact)
    }

    fn check_bounds(sketch: &Sketch, exact: &HashMap<String, u64>) {
        assert!(sketch.least() <= sketch.total() / COUNTERS as u64);
        assert!(sketch.counted().count() <= COUNTERS);
        let counted: HashMap<_, _> =
            sketch.counted().map(|(subject, count, error)| (subject, (count, error))).collect();
        for (subject, &truth) in exact {
            match counted.get(subject.as_str()) {
                Some(&(count, error)) => assert!(count - error <= truth && truth <= count, "{subject}"),
                None => assert!(truth <= sketch.least(), "{subject}: {truth}"),
            }
        }
    }

    #[test]
    fn few_subjects_are_counted_exactly() {
        let (sketch, exact) = filled((0..10_000).map(|index| index % 100));
        assert!(sketch.counted().all(|(subject, count, error)| (exact[subject], 0) == (count, error)));
        assert_eq!((sketch.counted().count(), sketch.least()), (100, 0));
    }

    #[test]
    fn among_a_million_subjects_the_frequent_ones_are_found_within_the_bound() {
        // Every tenth is one of five, the others come once each.
        let (sketch, exact) =
            filled((0..200_000).map(|index| if index % 10 == 0 { index / 10 % 5 } else { index + 10 }));
        check_bounds(&sketch, &exact);
        for subject in 0..5 {
            assert!(sketch.counted().any(|(counted, count, _)| counted == format!("s{subject}") && count >= 4_000));
        }
    }

    #[test]
    fn bounds_hold_whatever_comes() {
        let mut random = fastrand::Rng::with_seed(7);
        for skew in [2, 10, 1_000] {
            let (sketch, exact) = filled((0..50_000).map(|_| random.u64(0..random.clone().u64(1..skew * 100))));
            check_bounds(&sketch, &exact);
        }
    }
}
