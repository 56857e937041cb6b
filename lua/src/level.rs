//! What a bucket holds at one instant, and what that means for a cost.

use sluicegate_wire::Cost;

use crate::{Bucket, Refill};

/// A bucket as the script found it, refilled up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Whole tokens.
    pub tokens: u64,
    /// When it held just those, in ms since 1970; ahead of now after the clock went back.
    pub last_ms: u64,
    /// What had come in by then towards the next token beyond whole ms, in units of one `refill`-th ms.
    pub part: u64,
}

/// What one limit says to one take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Whether there were enough tokens.
    pub allowed: bool,
    /// Whole tokens left; on a denial, before the take.
    pub remaining: u64,
    /// The wait until the cost would pass, in ms: 0 when it does, none when it is more than the capacity.
    pub retry_after_ms: Option<u64>,
    /// The time to one more token, in ms; 0 when full.
    pub next_ms: u64,
    /// The time until full, in ms.
    pub full_ms: u64,
}

impl Level {
    /// The judgement on the `nth` (from 1) of several equal takes of which `granted` succeeded.
    #[must_use]
    pub fn judge(&self, bucket: &Bucket, now_ms: u64, cost: Cost, granted: u64, nth: u64) -> Judgement {
        let taken = cost.tokens().saturating_mul(nth.min(granted));
        let left = Self { tokens: self.tokens.saturating_sub(taken), ..*self };
        // A take that another limit denied is allowed by this one: it would have had the tokens.
        let allowed = nth <= granted || left.tokens >= cost.tokens();
        Judgement {
            allowed,
            remaining: left.tokens,
            retry_after_ms: if allowed { Some(0) } else { left.wait_ms(bucket, now_ms, cost.tokens()) },
            next_ms: left.wait_ms(bucket, now_ms, left.tokens.saturating_add(1)).unwrap_or(0),
            full_ms: left.wait_ms(bucket, now_ms, bucket.capacity()).unwrap_or(0),
        }
    }

    /// The ms until the bucket holds `wanted` tokens, rounded up; none when it never holds so many.
    fn wait_ms(&self, bucket: &Bucket, now_ms: u64, wanted: u64) -> Option<u64> {
        if wanted > bucket.capacity() {
            return None;
        }
        let missing = u128::from(wanted.saturating_sub(self.tokens));
        if missing == 0 {
            return Some(0);
        }
        let (refill, per_ms) = (u128::from(bucket.refill()), u128::from(bucket.per_ms()));
        let after_last_ms = match bucket.mode() {
            Refill::Greedy => (missing * per_ms).saturating_sub(u128::from(self.part)).div_ceil(refill),
            Refill::Interval => missing.div_ceil(refill) * per_ms,
        };
        let wait_ms = (u128::from(self.last_ms) + after_last_ms).saturating_sub(u128::from(now_ms));
        u64::try_from(wait_ms).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn bucket(capacity: u64, refill: u64, per_ms: u64, mode: Refill) -> Bucket {
        Bucket::new(capacity, refill, per_ms, mode).unwrap()
    }

    fn level(tokens: u64, ago_ms: u64, part: u64) -> Level {
        Level { tokens, last_ms: NOW_MS - ago_ms, part }
    }

    fn cost(tokens: u64) -> Cost {
        Cost::new(tokens).unwrap()
    }

    #[test]
    fn a_partly_refilled_token_shortens_the_wait() {
        let bucket = bucket(1, 1, 1_000, Refill::Greedy);
        let judged = level(0, 200, 0).judge(&bucket, NOW_MS, cost(1), 0, 1);
        assert_eq!(judged.retry_after_ms, Some(800));
        assert_eq!((judged.next_ms, judged.full_ms), (800, 800));
    }

    #[test]
    fn parts_of_a_ms_round_the_wait_up() {
        let bucket = bucket(10, 7, 3_000, Refill::Greedy);
        assert_eq!(level(0, 0, 0).judge(&bucket, NOW_MS, cost(1), 0, 1).retry_after_ms, Some(429));
        assert_eq!(level(0, 0, 5).judge(&bucket, NOW_MS, cost(1), 0, 1).retry_after_ms, Some(428));
    }

    #[test]
    fn a_cost_above_capacity_has_no_wait() {
        let judged = level(5, 0, 0).judge(&bucket(5, 1, 1, Refill::Greedy), NOW_MS, cost(6), 0, 1);
        assert!(!judged.allowed);
        assert_eq!((judged.remaining, judged.retry_after_ms, judged.full_ms), (5, None, 0));
    }

    #[test]
    fn joined_takes_count_down_one_by_one() {
        let bucket = bucket(5, 1, 1_000, Refill::Greedy);
        let judge = |nth| level(5, 0, 0).judge(&bucket, NOW_MS, cost(2), 2, nth);
        assert_eq!([1, 2, 3].map(|nth| judge(nth).remaining), [3, 1, 1]);
        assert_eq!([1, 2, 3].map(|nth| judge(nth).allowed), [true, true, false]);
        assert_eq!(judge(3).retry_after_ms, Some(1_000));
    }

    #[test]
    fn whole_periods_count_from_the_first_take() {
        let bucket = bucket(50, 20, 1_000, Refill::Interval);
        let judged = level(0, 400, 0).judge(&bucket, NOW_MS, cost(21), 0, 1);
        assert_eq!((judged.next_ms, judged.retry_after_ms, judged.full_ms), (600, Some(1_600), 2_600));
    }

    #[test]
    fn a_clock_that_went_back_waits_for_the_time_it_left() {
        let ahead = Level { tokens: 0, last_ms: NOW_MS + 500, part: 0 };
        let judged = ahead.judge(&bucket(1, 1, 1_000, Refill::Greedy), NOW_MS, cost(1), 0, 1);
        assert_eq!(judged.retry_after_ms, Some(1_500));
    }
}
