//! Which subjects take most and are denied most: counted in memory that doesn't grow with their number.
//!
//! Each thread counts in a stripe of its own, whose lock nobody else wants but who reads the whole. A stripe has for each
//! policy two sketches of 128 subjects for each of two panes of time, 5 minutes each: with 8 stripes and subjects of 128
//! bytes at most 1 MB a policy. What a reader sees are the last 5 to 10 minutes of this replica.

mod sketch;
mod stripe;

use std::{
    cell::Cell,
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::available_parallelism,
    time::{Duration, Instant},
};

use sluicegate_wire::Name;

use stripe::Stripe;

/// How long one pane of time counts before the next one begins.
const PANE: Duration = Duration::from_secs(5 * 60);
/// More threads than these share stripes.
const MAX_STRIPES: usize = 8;

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It took tokens.
    Taken,
    /// A limit or a ban denied it.
    Denied,
}

/// The counts. Clones share them.
#[derive(Clone, Debug)]
pub struct Top(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    stripes: Vec<Mutex<Stripe>>,
    hasher: RandomState,
    start: Instant,
}

/// The subjects of a policy that came most often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// How many checks were counted in all.
    pub total: u64,
    /// How often any subject that was not counted came at most.
    pub least: u64,
    /// The time they were counted in.
    pub window: Duration,
    /// The subjects, the most frequent first.
    pub subjects: Vec<Ranked>,
}

/// How often one subject came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranked {
    /// The subject as it stands in the store's keys: secrets are digests.
    pub subject: String,
    /// How many checks of it there were at most.
    pub count: u64,
    /// How many fewer there may have been.
    pub error: u64,
}

impl Top {
    /// Nothing counted yet, as of `now`.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        let stripes = available_parallelism().map_or(1, |threads| threads.get().min(MAX_STRIPES));
        let stripes = (0..stripes).map(|_| Mutex::default()).collect();
        Self(Arc::new(Inner { stripes, hasher: RandomState::new(), start: now }))
    }

    /// Counts so many checks of a policy for a subject, as the store's keys encode it.
    pub fn record(&self, policy: &Name, subject: &str, outcome: Outcome, checks: u64, now: Instant) {
        let hash = self.0.hasher.hash_one(subject);
        let stripe = &self.0.stripes[turn() % self.0.stripes.len()];
        lock(stripe).record(self.pane(now), policy, outcome, hash, subject, checks);
    }

    /// The `most` subjects of a policy that came most often.
    #[must_use]
    pub fn ranking(&self, policy: &str, outcome: Outcome, most: usize, now: Instant) -> Ranking {
        let pane = self.pane(now);
        let mut merged: HashMap<String, Merged> = HashMap::new();
        let (mut total, mut least) = (0, 0);
        for stripe in &self.0.stripes {
            for sketch in lock(stripe).sketches(pane, policy, outcome) {
                total += sketch.total();
                least += sketch.least();
                for (subject, count, error) in sketch.counted() {
                    let merged = merged.entry(subject.to_owned()).or_default();
                    merged.count += count;
                    merged.error += error;
                    merged.least += sketch.least();
                }
            }
        }
        // Where a sketch doesn't count a subject, it may have come as often as those that were counted least.
        let ranked = merged.into_iter().map(|(subject, merged)| {
            let absent = least - merged.least;
            Ranked { subject, count: merged.count + absent, error: merged.error + absent }
        });
        let mut subjects: Vec<_> = ranked.collect();
        subjects.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.subject.cmp(&b.subject)));
        subjects.truncate(most);
        let began = PANE * u32::try_from(pane.saturating_sub(1)).unwrap_or(u32::MAX);
        let window = now.saturating_duration_since(self.0.start).saturating_sub(began);
        Ranking { total, least, window, subjects }
    }

    fn pane(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.0.start).as_secs() / PANE.as_secs()
    }
}

/// What all sketches say of one subject.
#[derive(Default)]
struct Merged {
    count: u64,
    error: u64,
    /// The least counts of the sketches that count it.
    least: u64,
}

/// A number for each thread, one after another.
fn turn() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static TURN: Cell<Option<usize>> = const { Cell::new(None) };
    }
    TURN.with(|turn| {
        let taken = turn.get().unwrap_or_else(|| NEXT.fetch_add(1, Ordering::Relaxed));
        turn.set(Some(taken));
        taken
    })
}

fn lock(stripe: &Mutex<Stripe>) -> MutexGuard<'_, Stripe> {
    // Counts that a panic left half done are counts.
    stripe.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Name {
        "api".parse().unwrap()
    }

    fn ranked(top: &Top, outcome: Outcome, now: Instant) -> Vec<(String, u64)> {
        let ranking = top.ranking("api", outcome, 3, now);
        ranking.subjects.into_iter().map(|ranked| (ranked.subject, ranked.count)).collect()
    }

    #[test]
    fn takes_and_denials_are_ranked_apart() {
        let now = Instant::now();
        let top = Top::new(now);
        for (subject, takes, denials) in [("a", 3, 0), ("b", 1, 7), ("c", 2, 1), ("d", 1, 0)] {
            (0..takes).for_each(|_| top.record(&policy(), subject, Outcome::Taken, 1, now));
            (0..denials).for_each(|_| top.record(&policy(), subject, Outcome::Denied, 1, now));
        }
        assert_eq!(ranked(&top, Outcome::Taken, now), [("a".into(), 3), ("c".into(), 2), ("b".into(), 1)]);
        assert_eq!(ranked(&top, Outcome::Denied, now), [("b".into(), 7), ("c".into(), 1)]);
        assert_eq!(top.ranking("other", Outcome::Taken, 3, now).subjects, []);
    }

    #[test]
    fn what_is_older_than_two_panes_is_forgotten() {
        let start = Instant::now();
        let top = Top::new(start);
        top.record(&policy(), "a", Outcome::Taken, 1, start);
        let later = start + PANE;
        top.record(&policy(), "b", Outcome::Taken, 1, later);
        let ranking = top.ranking("api", Outcome::Taken, 9, later + PANE / 2);
        assert_eq!((ranking.total, ranking.window), (2, PANE + PANE / 2));
        let ranking = top.ranking("api", Outcome::Taken, 9, later + PANE);
        assert_eq!((ranking.total, ranking.window), (1, PANE));
        assert_eq!(ranked(&top, Outcome::Taken, later + PANE * 7), []);
    }

    #[test]
    fn counts_of_all_threads_come_together_within_their_bounds() {
        let now = Instant::now();
        let top = Top::new(now);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let top = &top;
                scope.spawn(move || {
                    for index in 0..5_000 {
                        top.record(&policy(), "often", Outcome::Denied, 1, now);
                        top.record(&policy(), &format!("{thread}.{index}"), Outcome::Denied, 1, now);
                    }
                });
            }
        });
        let ranking = top.ranking("api", Outcome::Denied, 10, now);
        assert_eq!((ranking.total, ranking.subjects.len()), (40_000, 10));
        assert!(ranking.least <= 40_000 / 128, "{}", ranking.least);
        let first = &ranking.subjects[0];
        assert_eq!(first.subject, "often");
        assert!(first.count >= 20_000 && first.count - first.error <= 20_000, "{first:?}");
    }
}
