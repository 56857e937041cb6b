//! What a limit holds at one instant, and what that means for a cost.

use sluicegate_wire::{Cost, Reason};

use crate::{Bucket, Refill, ReplyError, Rule};

/// A limit as the script found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Level {
    /// A bucket, refilled up to now.
    Bucket {
        /// Its numbers: the policy's, or the subject's own.
        bucket: Bucket,
        /// Whole tokens.
        tokens: u64,
        /// When it held just those, in ms since 1970; ahead of now after the clock went back.
        last_ms: u64,
        /// What had come in by then towards the next token beyond whole ms, in units of one `refill`-th ms.
        part: u64,
    },
    /// A quota in its current window.
    Quota {
        /// Its number: the policy's, or the subject's own.
        quota: u64,
        /// Tokens left in the window.
        tokens: u64,
        /// When the window began, in ms since 1970.
        start_ms: u64,
        /// When it ends.
        end_ms: u64,
    },
}

/// What one limit says to one take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// Why it was allowed or denied.
    pub reason: Reason,
    /// Whole tokens left; on a denial, before the take.
    pub remaining: u64,
    /// The wait until the cost would pass, in ms: 0 when it does, none when it is more than the capacity.
    pub retry_after_ms: Option<u64>,
    /// The time to one more token, in ms; 0 when full.
    pub next_ms: u64,
    /// The time until full, in ms.
    pub full_ms: u64,
}

impl Judgement {
    /// Whether the limit lets the take pass.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.reason == Reason::Ok
    }
}

impl Level {
    /// Reads what `lua/take.lua` says of a limit: three numbers, and three of the subject's own after an override.
    pub(crate) fn new(rule: &Rule, numbers: [u64; 3], own: Option<[u64; 3]>) -> Result<Self, ReplyError> {
        let [tokens, second, third] = numbers;
        match rule {
            Rule::Bucket(bucket) => {
                let bucket = match own {
                    Some([capacity, refill, per_ms]) => {
                        Bucket::new(capacity, refill, per_ms, bucket.mode()).map_err(|_| ReplyError)?
                    }
                    None => *bucket,
                };
                Ok(Self::Bucket { bucket, tokens, last_ms: second, part: third })
            }
            Rule::Quota(quota) => {
                let quota = own.map_or(quota.quota(), |[quota, _, _]| quota);
                Ok(Self::Quota { quota, tokens, start_ms: second, end_ms: third })
            }
        }
    }

    /// Whole tokens.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        match self {
            Self::Bucket { tokens, .. } | Self::Quota { tokens, .. } => *tokens,
        }
    }

    /// The most tokens the limit holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        match self {
            Self::Bucket { bucket, .. } => bucket.capacity(),
            Self::Quota { quota, .. } => *quota,
        }
    }

    /// The time a bucket takes to fill, or the length of a quota's window, in ms.
    #[must_use]
    pub fn window_ms(&self) -> u64 {
        match self {
            Self::Bucket { bucket, .. } => bucket.fill_ms(),
            Self::Quota { start_ms, end_ms, .. } => end_ms.saturating_sub(*start_ms),
        }
    }

    /// The stamp by which a refund finds the window that was charged; 0 for a bucket, which has none.
    #[must_use]
    pub const fn stamp(&self) -> u64 {
        match self {
            Self::Bucket { .. } => 0,
            Self::Quota { start_ms, .. } => *start_ms,
        }
    }

    /// The judgement on the `nth` (from 1) of several equal takes of which the first `granted` succeeded.
    #[must_use]
    pub fn judge(&self, now_ms: u64, cost: Cost, granted: u64, nth: u64) -> Judgement {
        let cost = cost.tokens();
        let left = self.tokens().saturating_sub(cost.saturating_mul(nth.min(granted)));
        // A take that another limit denied passes this one: it would have had the tokens.
        let allowed = nth <= granted || left >= cost;
        let wait_ms = |wanted| self.wait_ms(now_ms, left, wanted);
        let retry_after_ms = if allowed { Some(0) } else { wait_ms(cost) };
        Judgement {
            reason: match retry_after_ms {
                _ if allowed => Reason::Ok,
                Some(_) => Reason::OverLimit,
                None => Reason::Never,
            },
            remaining: left,
            retry_after_ms,
            next_ms: wait_ms(left.saturating_add(1)).unwrap_or(0),
            full_ms: wait_ms(self.capacity()).unwrap_or(0),
        }
    }

    /// The ms until `tokens` have become `wanted`, rounded up; none when the limit never holds so many.
    fn wait_ms(&self, now_ms: u64, tokens: u64, wanted: u64) -> Option<u64> {
        if wanted > self.capacity() {
            return None;
        }
        let missing = u128::from(wanted.saturating_sub(tokens));
        if missing == 0 {
            return Some(0);
        }
        let then_ms = match self {
            Self::Bucket { bucket, last_ms, part, .. } => {
                let (refill, per_ms) = (u128::from(bucket.refill()), u128::from(bucket.per_ms()));
                u128::from(*last_ms)
                    + match bucket.mode() {
                        Refill::Greedy => (missing * per_ms).saturating_sub(u128::from(*part)).div_ceil(refill),
                        Refill::Interval => missing.div_ceil(refill) * per_ms,
                    }
            }
            Self::Quota { end_ms, .. } => u128::from(*end_ms),
        };
        u64::try_from(then_ms.saturating_sub(u128::from(now_ms))).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn level(bucket: (u64, u64, u64, Refill), tokens: u64, ago_ms: u64, part: u64) -> Level {
        let bucket = Bucket::new(bucket.0, bucket.1, bucket.2, bucket.3).unwrap();
        Level::Bucket { bucket, tokens, last_ms: NOW_MS - ago_ms, part }
    }

    fn judge(level: &Level, cost: u64) -> Judgement {
        level.judge(NOW_MS, Cost::new(cost).unwrap(), 0, 1)
    }

    #[test]
    fn a_partly_refilled_token_shortens_the_wait() {
        let judged = judge(&level((1, 1, 1_000, Refill::Greedy), 0, 200, 0), 1);
        assert_eq!(judged.retry_after_ms, Some(800));
        assert_eq!((judged.next_ms, judged.full_ms), (800, 800));
    }

    #[test]
    fn parts_of_a_ms_round_the_wait_up() {
        let numbers = (10, 7, 3_000, Refill::Greedy);
        assert_eq!(judge(&level(numbers, 0, 0, 0), 1).retry_after_ms, Some(429));
        assert_eq!(judge(&level(numbers, 0, 0, 5), 1).retry_after_ms, Some(428));
    }

    #[test]
    fn a_cost_above_capacity_has_no_wait() {
        let judged = judge(&level((5, 1, 1, Refill::Greedy), 5, 0, 0), 6);
        assert_eq!(judged.reason, Reason::Never);
        assert_eq!((judged.remaining, judged.retry_after_ms, judged.full_ms), (5, None, 0));
    }

    #[test]
    fn joined_takes_count_down_one_by_one() {
        let level = level((5, 1, 1_000, Refill::Greedy), 5, 0, 0);
        let judge = |nth| level.judge(NOW_MS, Cost::new(2).unwrap(), 2, nth);
        assert_eq!([1, 2, 3].map(|nth| judge(nth).remaining), [3, 1, 1]);
        assert_eq!([1, 2, 3].map(|nth| judge(nth).allowed()), [true, true, false]);
        assert_eq!(judge(3).retry_after_ms, Some(1_000));
    }

    #[test]
    fn whole_periods_count_from_the_first_take() {
        let judged = judge(&level((50, 20, 1_000, Refill::Interval), 0, 400, 0), 21);
        assert_eq!((judged.next_ms, judged.retry_after_ms, judged.full_ms), (600, Some(1_600), 2_600));
    }

    #[test]
    fn a_clock_that_went_back_waits_for_the_time_it_left() {
        let bucket = Bucket::new(1, 1, 1_000, Refill::Greedy).unwrap();
        let ahead = Level::Bucket { bucket, tokens: 0, last_ms: NOW_MS + 500, part: 0 };
        assert_eq!(judge(&ahead, 1).retry_after_ms, Some(1_500));
    }

    #[test]
    fn a_quota_waits_for_the_end_of_its_window() {
        let quota = Level::Quota { quota: 100, tokens: 3, start_ms: NOW_MS - 10, end_ms: NOW_MS + 59_990 };
        let judged = judge(&quota, 4);
        assert_eq!((judged.remaining, judged.retry_after_ms, judged.next_ms), (3, Some(59_990), 59_990));
        assert_eq!(quota.window_ms(), 60_000);
        assert_eq!(judge(&quota, 101).reason, Reason::Never);
    }
}
