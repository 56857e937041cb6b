//! How long checks of one policy took: a histogram so cheap that each policy has one.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Classes for each doubling of the time: a class is at most a quarter longer at its end than at its begin.
const PER_DOUBLING: usize = 4;
/// The first class is all below 32 µs, which no store is.
const FIRST_BITS: usize = 5;
/// The last class is all from 2²¹ µs, 2 s, on.
const LAST_BITS: usize = 21;

/// How many classes there are.
pub const CLASSES: usize = (LAST_BITS - FIRST_BITS) * PER_DOUBLING + 2;

/// Counts of times by class, from any thread.
#[derive(Debug)]
pub(crate) struct Latencies([AtomicU64; CLASSES]);

impl Default for Latencies {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; CLASSES])
    }
}

impl Latencies {
    pub(crate) fn observe(&self, took: Duration) {
        self.0[class(took)].fetch_add(1, Ordering::Relaxed);
    }

    /// All counts since the start.
    pub(crate) fn counts(&self) -> [u64; CLASSES] {
        std::array::from_fn(|class| self.0[class].load(Ordering::Relaxed))
    }
}

fn class(took: Duration) -> usize {
    let us = took.as_micros();
    let bits = (u128::BITS - us.leading_zeros()) as usize;
    if bits <= FIRST_BITS {
        return 0;
    }
    if bits > LAST_BITS {
        return CLASSES - 1;
    }
    // The two bits after the highest.
    let quarter = ((us >> (bits - 3)) & 0b11) as usize;
    1 + (bits - FIRST_BITS - 1) * PER_DOUBLING + quarter
}

/// The longest time of a class, or the shortest of the last, which has no end.
fn upper_edge(class: usize) -> Duration {
    let Some(class) = class.checked_sub(1) else { return Duration::from_micros(1 << FIRST_BITS) };
    let (doubling, quarter) = (class / PER_DOUBLING, class % PER_DOUBLING);
    if doubling >= LAST_BITS - FIRST_BITS {
        return Duration::from_micros(1 << LAST_BITS);
    }
    Duration::from_micros((5 + quarter as u64) << (FIRST_BITS + doubling - 2))
}

/// The time that 99 of 100 don't exceed: at most a quarter too long. None without any.
pub(crate) fn p99(counts: &[u64]) -> Option<Duration> {
    let total: u64 = counts.iter().sum();
    let rank = total - total / 100;
    let mut below = 0;
    let reaches = |(_, count): &(usize, &u64)| {
        below += **count;
        below >= rank
    };
    let (class, _) = counts.iter().enumerate().find(reaches).filter(|_| total > 0)?;
    Some(upper_edge(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_ends_where_the_next_begins_and_is_at_most_a_quarter_wide() {
        for at in 0..CLASSES - 1 {
            let edge = upper_edge(at);
            assert_eq!(class(edge - Duration::from_micros(1)), at, "{edge:?}");
            assert_eq!(class(edge), at + 1, "{edge:?}");
            assert!(at == 0 || edge <= upper_edge(at - 1).mul_f64(1.25), "{edge:?}");
        }
        assert_eq!(class(Duration::MAX), CLASSES - 1);
        assert_eq!(class(Duration::ZERO), 0);
    }

    #[test]
    fn the_99th_of_100_is_found() {
        assert_eq!(p99(&Latencies::default().counts()), None);
        let latencies = Latencies::default();
        latencies.observe(Duration::from_millis(1));
        assert_eq!(p99(&latencies.counts()), Some(Duration::from_micros(1_024)));
        for _ in 0..98 {
            latencies.observe(Duration::from_micros(100));
        }
        assert_eq!(p99(&latencies.counts()), Some(Duration::from_micros(1_024)), "of 99 it is the slowest");
        latencies.observe(Duration::from_micros(100));
        assert_eq!(p99(&latencies.counts()), Some(Duration::from_micros(112)), "of 100 it is the last but one");
    }
}
