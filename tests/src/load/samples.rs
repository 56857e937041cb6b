//! What a load saw.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::Range,
    time::{Duration, Instant},
};

/// One request and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Whom it was about.
    pub subject: String,
    /// When it was sent.
    pub sent_at: Instant,
    /// The time to the end of the answer, or until there was known to be none.
    pub elapsed: Duration,
    /// The answer's status; none when no whole answer came.
    pub status: Option<u16>,
    /// Why it failed: the problem's detail, or what the client says. Empty when it was decided.
    pub detail: String,
}

impl Sample {
    /// When the answer was there.
    #[must_use]
    pub fn ended_at(&self) -> Instant {
        self.sent_at + self.elapsed
    }

    /// Allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.status == Some(200)
    }

    /// Denied by a limit.
    #[must_use]
    pub fn is_denied(&self) -> bool {
        self.status == Some(429)
    }

    /// Neither allowed nor denied.
    #[must_use]
    pub fn is_failed(&self) -> bool {
        !self.is_allowed() && !self.is_denied()
    }

    /// Whether it was under way at that instant.
    #[must_use]
    pub fn spans(&self, instant: Instant) -> bool {
        self.sent_at <= instant && instant <= self.ended_at()
    }
}

/// All requests of a load, in the order of sending.
#[derive(Clone, PartialEq, Eq)]
pub struct Samples(Vec<Sample>);

impl Samples {
    /// Samples of one load or of several.
    #[must_use]
    pub fn new(samples: impl Iterator<Item = Sample>) -> Self {
        let mut samples: Vec<_> = samples.collect();
        samples.sort_by_key(|sample| sample.sent_at);
        Self(samples)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Sample> {
        self.0.iter()
    }

    /// How many there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many were allowed.
    #[must_use]
    pub fn allowed(&self) -> usize {
        self.iter().filter(|sample| sample.is_allowed()).count()
    }

    /// How many were denied.
    #[must_use]
    pub fn denied(&self) -> usize {
        self.iter().filter(|sample| sample.is_denied()).count()
    }

    /// How many were neither.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.iter().filter(|sample| sample.is_failed()).count()
    }

    /// The longest wait for an answer of any kind; zero when nothing was asked.
    #[must_use]
    pub fn worst(&self) -> Duration {
        self.iter().map(|sample| sample.elapsed).max().unwrap_or_default()
    }

    /// The median wait, the longer of the two in the middle; zero when nothing was asked.
    #[must_use]
    pub fn median(&self) -> Duration {
        let mut waits: Vec<_> = self.iter().map(|sample| sample.elapsed).collect();
        waits.sort_unstable();
        waits.get(waits.len() / 2).copied().unwrap_or_default()
    }

    /// The failures that weren't under way at that instant, and which what happened then doesn't explain.
    #[must_use]
    pub fn failures_not_spanning(&self, instant: Instant) -> Vec<&Sample> {
        self.iter().filter(|sample| sample.is_failed() && !sample.spans(instant)).collect()
    }

    /// Of the requests sent at that instant or later, the one that was decided first.
    #[must_use]
    pub fn first_decided_after(&self, instant: Instant) -> Option<&Sample> {
        self.iter()
            .filter(|sample| sample.sent_at >= instant && !sample.is_failed())
            .min_by_key(|sample| sample.ended_at())
    }

    /// How many of the requests sent in that time ended with this status; none stands for no answer.
    #[must_use]
    pub fn count(&self, sent: Range<Instant>, status: Option<u16>) -> usize {
        self.iter().filter(|sample| sent.contains(&sample.sent_at) && sample.status == status).count()
    }

    /// Those sent in that time.
    #[must_use]
    pub fn sent_in(&self, sent: Range<Instant>) -> Self {
        Self(self.iter().filter(|sample| sent.contains(&sample.sent_at)).cloned().collect())
    }

    /// Those of each subject.
    #[must_use]
    pub fn by_subject(&self) -> HashMap<&str, Self> {
        let mut by_subject: HashMap<&str, Self> = HashMap::new();
        for sample in self.iter() {
            by_subject.entry(&sample.subject).or_insert_with(|| Self(Vec::new())).0.push(sample.clone());
        }
        by_subject
    }
}

/// How many ended how: thousands of samples in a failed assertion help nobody.
impl fmt::Debug for Samples {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut ends: BTreeMap<(Option<u16>, &str), usize> = BTreeMap::new();
        for sample in self.iter() {
            *ends.entry((sample.status, &sample.detail)).or_default() += 1;
        }
        formatter
            .debug_struct("Samples")
            .field("ends", &ends)
            .field("median", &self.median())
            .field("worst", &self.worst())
            .finish()
    }
}
