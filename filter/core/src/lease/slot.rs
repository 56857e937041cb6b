//! What the workers of a proxy know of one subject: how much it used lately, and the tokens held for it.

use super::{Lease, TICK_MS};

/// Tokens used in a lease's time from which on a subject is hot. Asking for a lease and giving one back are two callouts,
/// so for a colder one it might save nothing.
const HOT_TOKENS: u64 = 8;

/// What is known of one subject. Times are ms of the proxy's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    /// Policy and key, as they stand in a question.
    pub(super) id: Vec<u8>,
    /// When the current count of use began, the tokens since, and those of as long a time before it.
    pub(super) counting_since_ms: u64,
    pub(super) used: u64,
    pub(super) used_before: u64,
    /// When it was last used.
    pub(super) last_ms: u64,
    /// Until then nobody asks for a lease: somebody does, or was told that there is none.
    pub(super) asked_until_ms: u64,
    /// Tokens in hand, those that are over first.
    pub(super) batches: [Batch; 2],
    /// What the service said of the limit with the last lease.
    pub(super) limit: KnownLimit,
}

/// Tokens that are over at the same time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) tokens: u64,
    /// From then on the clock has to be, or it went back: then nothing is known of the time that passed.
    pub(super) since_ms: u64,
    /// Before then they are served, and for [`Lease::GIVE_BACK_MS`] more can be given back.
    pub(super) until_ms: u64,
}

/// A limit at the moment of the last lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KnownLimit {
    pub(super) name: Vec<u8>,
    pub(super) capacity: u64,
    pub(super) window_ms: u64,
    pub(super) remaining: u64,
    pub(super) next_ms: u64,
    pub(super) full_ms: u64,
    pub(super) at_ms: u64,
}

impl Batch {
    const fn serves(&self, now_ms: u64) -> bool {
        self.since_ms <= now_ms && now_ms < self.until_ms
    }

    /// Whether its tokens are lost.
    const fn is_over(&self, now_ms: u64) -> bool {
        now_ms < self.since_ms || now_ms >= self.until_ms.saturating_add(Lease::GIVE_BACK_MS)
    }
}

impl Slot {
    /// Counts use, by windows of a lease's time.
    pub(super) fn count(&mut self, cost: u64, for_ms: u64, now_ms: u64) {
        let passed = now_ms.abs_diff(self.counting_since_ms);
        if passed >= for_ms {
            let next_to = passed < for_ms.saturating_mul(2);
            self.used_before = if next_to { self.used } else { 0 };
            self.used = 0;
            self.counting_since_ms =
                if next_to { self.counting_since_ms.saturating_add(for_ms).min(now_ms) } else { now_ms };
        }
        self.used = self.used.saturating_add(cost);
        self.last_ms = now_ms;
    }

    /// About how many tokens were used in the last `for_ms`.
    fn recent(&self, for_ms: u64, now_ms: u64) -> u64 {
        let left_ms = for_ms.saturating_sub(now_ms.abs_diff(self.counting_since_ms));
        self.used.saturating_add(share(self.used_before, left_ms, for_ms))
    }

    /// Tokens that can be served.
    pub(super) fn left(&self, now_ms: u64) -> u64 {
        let serving = self.batches.iter().filter(|batch| batch.serves(now_ms));
        serving.fold(0, |left, batch| left.saturating_add(batch.tokens))
    }

    /// Takes tokens; the time at which the first of them would have been over. None when there are too few.
    pub(super) fn take(&mut self, cost: u64, now_ms: u64) -> Option<u64> {
        if self.left(now_ms) < cost {
            return None;
        }
        let mut wanted = cost;
        let mut until_ms = u64::MAX;
        for batch in self.batches.iter_mut().filter(|batch| batch.serves(now_ms) && batch.tokens > 0) {
            if wanted > 0 {
                let taken = wanted.min(batch.tokens);
                batch.tokens = batch.tokens.saturating_sub(taken);
                wanted = wanted.saturating_sub(taken);
                until_ms = until_ms.min(batch.until_ms);
            }
        }
        Some(until_ms)
    }

    /// Puts tokens back that were taken and are over at `until_ms`.
    pub(super) fn give(&mut self, tokens: u64, until_ms: u64, now_ms: u64) {
        let [first, _] = &mut self.batches;
        if first.tokens == 0 {
            *first = Batch { tokens, since_ms: now_ms, until_ms };
        } else {
            first.tokens = first.tokens.saturating_add(tokens);
            first.until_ms = first.until_ms.min(until_ms);
        }
    }

    /// How many tokens to ask for now, so that they come before those in hand run out; none when it isn't worth while, or
    /// somebody asks already. `answer_ms` is how long an answer may take.
    pub(super) fn wants(&self, lease: Lease, answer_ms: u64, now_ms: u64) -> Option<u64> {
        let for_ms = lease.for_ms.get();
        if self.is_asked_for(now_ms) {
            return None;
        }
        let recent = self.recent(for_ms, now_ms);
        if recent < HOT_TOKENS {
            return None;
        }
        let wanted = recent.min(lease.tokens.get());
        // At least half of it at a time, or a slow service would be asked for a token or two, again and again.
        let ahead = share(recent, answer_ms.saturating_add(TICK_MS), for_ms).min(wanted >> 1);
        let left = self.left(now_ms);
        (left <= ahead).then(|| wanted.saturating_sub(left))
    }

    /// Adds a lease. Of more than two at a time the older ones end with the first of them.
    pub(super) fn add(&mut self, lease: Batch) {
        let [first, second] = &mut self.batches;
        match (first.tokens, second.tokens) {
            (_, 0) => {}
            (0, _) => *first = *second,
            (tokens, more) => {
                *first = Batch {
                    tokens: tokens.saturating_add(more),
                    since_ms: first.since_ms.max(second.since_ms),
                    until_ms: first.until_ms.min(second.until_ms),
                }
            }
        }
        *second = lease;
    }

    /// Takes out what is to be given back: what is no longer served, and all when the subject was not seen for half of the
    /// time. What is over is lost.
    pub(super) fn take_unused(&mut self, now_ms: u64) -> Batch {
        let unseen_ms = now_ms.abs_diff(self.last_ms);
        let mut unused = Batch { tokens: 0, since_ms: now_ms, until_ms: u64::MAX };
        for batch in &mut self.batches {
            if batch.is_over(now_ms) {
                batch.tokens = 0;
            }
            let idle = unseen_ms > batch.until_ms.saturating_sub(batch.since_ms) >> 1;
            if batch.tokens > 0 && (idle || !batch.serves(now_ms)) {
                unused.tokens = unused.tokens.saturating_add(std::mem::take(&mut batch.tokens));
                unused.until_ms = unused.until_ms.min(batch.until_ms);
            }
        }
        unused
    }

    /// Whether there is something to serve or to give back.
    pub(super) fn holds(&self, now_ms: u64) -> bool {
        self.batches.iter().any(|batch| batch.tokens > 0 && !batch.is_over(now_ms))
    }

    /// Whether somebody asks, or was told that there is none. A clock set back ends that.
    const fn is_asked_for(&self, now_ms: u64) -> bool {
        now_ms < self.asked_until_ms && self.asked_until_ms.abs_diff(now_ms) <= MAX_WAIT_MS
    }

    /// Whether another subject may have the slot.
    pub(super) fn is_free(&self, now_ms: u64) -> bool {
        !self.is_asked_for(now_ms) && !self.holds(now_ms)
    }
}

/// The longest that nobody asks, in ms.
pub(super) const MAX_WAIT_MS: u64 = 60_000;

/// `part` of `whole` parts of a number.
fn share(number: u64, part: u64, whole: u64) -> u64 {
    number.saturating_mul(part).checked_div(whole).unwrap_or(0)
}

#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "a test may panic")]
mod tests {
    use sluicegate_wire::{LeaseMs, LeaseTokens};
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    const FOR_MS: u64 = 2_000;

    fn lease(tokens: u64) -> Lease {
        Lease { tokens: LeaseTokens::new(tokens).unwrap(), for_ms: LeaseMs::new(FOR_MS).unwrap() }
    }

    fn batch(tokens: u64, since_ms: u64) -> Batch {
        Batch { tokens, since_ms, until_ms: since_ms + FOR_MS }
    }

    /// A subject that used a token every `every_ms`, up to `until_ms`.
    fn used(every_ms: usize, until_ms: u64) -> Slot {
        let mut slot = Slot::default();
        (10_000..=until_ms).step_by(every_ms).for_each(|now_ms| slot.count(1, FOR_MS, now_ms));
        slot
    }

    #[test]
    fn a_cold_subject_never_asks() {
        let slot = used(300, 60_000);
        assert_eq!((slot.recent(FOR_MS, 60_000), slot.wants(lease(50), 25, 60_000)), (7, None));
        let hot = used(200, 60_000);
        assert_eq!(hot.wants(lease(50), 25, 60_000), Some(hot.recent(FOR_MS, 60_000)));
        // Its use of some time ago makes it no longer hot.
        assert_eq!(hot.wants(lease(50), 25, 64_000), None);
    }

    #[test]
    fn it_asks_before_it_runs_dry_and_for_half_of_it_at_least() {
        // 1 token a ms: 35 before an answer can come.
        let mut slot = used(1, 20_000);
        assert_eq!(slot.wants(lease(100), 25, 20_000), Some(100));
        slot.add(batch(37, 20_000));
        assert_eq!(slot.wants(lease(100), 25, 20_000), None);
        assert_eq!(slot.take(2, 20_000), Some(22_000));
        assert_eq!(slot.wants(lease(100), 25, 20_000), Some(65));
        // Answers that take a second: not again and again for the few that are missing.
        assert_eq!(slot.wants(lease(60), 1_000, 20_000), None);
        slot.asked_until_ms = 20_001;
        assert_eq!(slot.wants(lease(100), 25, 20_000), None);
        assert_eq!(slot.wants(lease(100), 25, 20_001), Some(65));
        slot.asked_until_ms = 20_001 + MAX_WAIT_MS + 1;
        assert_eq!(slot.wants(lease(100), 25, 20_001), Some(65), "the clock went back");
    }

    #[test]
    fn nothing_is_served_after_its_time_or_when_the_clock_went_back() {
        let mut slot = Slot::default();
        slot.add(batch(5, 10_000));
        for now_ms in [9_999, 12_000, 99_000] {
            assert_eq!((slot.left(now_ms), slot.take(1, now_ms)), (0, None), "{now_ms}");
        }
        assert_eq!(slot.take(6, 11_999), None);
        assert_eq!(slot.take(5, 11_999), Some(12_000));
    }

    #[test]
    fn older_tokens_are_served_first_and_none_lives_longer_for_being_added_to() {
        let mut slot = Slot::default();
        for (tokens, since_ms) in [(3, 10_000), (4, 10_500), (5, 11_000)] {
            slot.add(batch(tokens, since_ms));
        }
        assert_eq!(slot.batches, [Batch { tokens: 7, since_ms: 10_500, until_ms: 12_000 }, batch(5, 11_000)]);
        assert_eq!(slot.take(8, 11_999), Some(12_000));
        assert_eq!(slot.batches, [Batch { tokens: 0, since_ms: 10_500, until_ms: 12_000 }, batch(4, 11_000)]);
        slot.give(8, 12_000, 11_999);
        assert_eq!((slot.left(11_999), slot.left(12_000)), (12, 4));
    }

    #[test]
    fn what_is_over_or_idle_is_given_back() {
        let mut slot = Slot { last_ms: 11_900, ..Slot::default() };
        slot.add(batch(3, 10_000));
        slot.add(batch(4, 11_000));
        let given = |slot: &Slot, now_ms| slot.clone().take_unused(now_ms).tokens;
        assert_eq!(given(&slot, 11_999), 0);
        assert!(!slot.is_free(11_999));
        assert_eq!(given(&slot, 12_000), 3);
        assert_eq!(given(&slot, 12_099), 3);
        // Too late: given back now, it might come on top of what has come in since.
        assert_eq!(given(&slot, 12_100), 0);
        assert_eq!(given(&slot, 12_900), 0);
        assert_eq!(given(&slot, 12_901), 4, "not seen for a second");
        assert_eq!((given(&slot, 13_099), slot.is_free(13_099)), (4, false));
        assert_eq!((given(&slot, 13_100), slot.is_free(13_100)), (0, true));
        assert_eq!(given(&slot, 9_999), 0, "the clock went back");
    }
}
