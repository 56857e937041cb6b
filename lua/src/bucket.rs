//! The numbers of one token bucket.

/// The longest time a bucket may take to fill: 366 days, in ms. What is written must expire some day.
pub const MAX_FILL_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// The largest integer that a Lua number holds exactly.
const MAX_EXACT: u128 = 1 << 53;

/// How tokens come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refill {
    /// All the time: each ms adds its share.
    Greedy,
    /// All of a period's tokens at the end of each whole period from the first take.
    Interval,
}

impl Refill {
    /// The letter that the scripts know it by.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Greedy => "g",
            Self::Interval => "i",
        }
    }
}

/// A token bucket: holds at most `capacity` tokens, starts full, gains `refill` tokens in each `per_ms`.
///
/// For [`Refill::Greedy`] `refill / per_ms` is kept reduced, since the script counts in units of `1 / per_ms` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    capacity: u64,
    refill: u64,
    per_ms: u64,
    mode: Refill,
}

impl Bucket {
    /// A bucket of these numbers, refused when it can't be counted exactly, never refills, or takes over
    /// [`MAX_FILL_MS`] to fill.
    pub fn new(capacity: u64, refill: u64, per_ms: u64, mode: Refill) -> Result<Self, BucketError> {
        if capacity == 0 {
            return Err(BucketError::NoCapacity);
        }
        if refill == 0 {
            return Err(BucketError::NoRefill);
        }
        if per_ms == 0 || per_ms > MAX_FILL_MS {
            return Err(BucketError::Period { per_ms });
        }
        let divisor = greatest_common_divisor(refill, per_ms);
        let (refill_reduced, per_reduced) = (refill / divisor, per_ms / divisor);
        let units = u128::from(capacity) * u128::from(per_reduced);
        if units > MAX_EXACT || u128::from(refill) > MAX_EXACT {
            return Err(BucketError::Inexact { capacity, refill: refill_reduced, per_ms: per_reduced });
        }
        let bucket = match mode {
            Refill::Greedy => Self { capacity, refill: refill_reduced, per_ms: per_reduced, mode },
            Refill::Interval => Self { capacity, refill, per_ms, mode },
        };
        let fill_ms = bucket.fill_ms_wide();
        if fill_ms > u128::from(MAX_FILL_MS) {
            return Err(BucketError::TooSlow { fill_ms });
        }
        Ok(bucket)
    }

    /// The most tokens the bucket holds.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Tokens gained in each [`Bucket::per_ms`].
    #[must_use]
    pub const fn refill(&self) -> u64 {
        self.refill
    }

    /// The period of the refill, in ms.
    #[must_use]
    pub const fn per_ms(&self) -> u64 {
        self.per_ms
    }

    /// How tokens come back.
    #[must_use]
    pub const fn mode(&self) -> Refill {
        self.mode
    }

    /// The time from empty to full in ms, rounded up.
    #[must_use]
    pub fn fill_ms(&self) -> u64 {
        // At most MAX_FILL_MS: `new` saw to it.
        u64::try_from(self.fill_ms_wide()).unwrap_or(MAX_FILL_MS)
    }

    fn fill_ms_wide(&self) -> u128 {
        let (capacity, refill, per_ms) = (u128::from(self.capacity), u128::from(self.refill), u128::from(self.per_ms));
        match self.mode {
            Refill::Greedy => (capacity * per_ms).div_ceil(refill),
            Refill::Interval => capacity.div_ceil(refill) * per_ms,
        }
    }
}

/// Why numbers don't make a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BucketError {
    /// A bucket that holds nothing denies everything.
    #[error("capacity is 0: it must be at least 1")]
    NoCapacity,
    /// A bucket that never refills would have to be kept for ever.
    #[error("refill is 0: it must be at least 1, or the bucket never refills")]
    NoRefill,
    /// A period of no time, or longer than anything written is kept.
    #[error("per is {per_ms} ms: it must be from 1 ms to 366 days")]
    Period {
        /// The period asked for.
        per_ms: u64,
    },
    /// The arithmetic would round.
    #[error(
        "capacity {capacity} with {refill} tokens per {per_ms} ms can't be counted exactly: capacity times the period \
         in ms (of the reduced rate) is over 2^53; use a smaller capacity, or a rate that reduces to a shorter period"
    )]
    Inexact {
        /// The capacity asked for.
        capacity: u64,
        /// The refill of the reduced rate.
        refill: u64,
        /// The period of the reduced rate.
        per_ms: u64,
    },
    /// Nothing is kept that long.
    #[error("it takes {} days to fill: the most is 366 days; use a smaller capacity or a faster refill", fill_ms / 86_400_000)]
    TooSlow {
        /// The time from empty to full.
        fill_ms: u128,
    },
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(capacity: u64, refill: u64, per_ms: u64, mode: Refill, expected: Result<(u64, u64, u64), &str>) {
        let made = Bucket::new(capacity, refill, per_ms, mode);
        match expected {
            Ok(numbers) => {
                let bucket = made.unwrap();
                assert_eq!((bucket.refill(), bucket.per_ms(), bucket.fill_ms()), numbers);
            }
            Err(reason) => {
                let error = made.unwrap_err().to_string();
                assert!(error.contains(reason), "{error}");
            }
        }
    }

    #[test]
    fn greedy_rates_are_reduced() {
        check(200, 1000, 60_000, Refill::Greedy, Ok((1, 60, 12_000)));
        check(5, 7, 3_000, Refill::Greedy, Ok((7, 3_000, 2_143)));
        check(1, 1, 86_400_500, Refill::Greedy, Ok((1, 86_400_500, 86_400_500)));
        check(10, 5_000, 1_000, Refill::Greedy, Ok((5, 1, 2)));
    }

    #[test]
    fn interval_periods_are_kept() {
        check(50, 50, 86_400_000, Refill::Interval, Ok((50, 86_400_000, 86_400_000)));
        check(5, 2, 10, Refill::Interval, Ok((2, 10, 30)));
    }

    #[test]
    fn what_can_not_work_is_refused_with_the_reason() {
        check(0, 1, 1, Refill::Greedy, Err("capacity is 0"));
        check(1, 0, 1, Refill::Greedy, Err("refill is 0"));
        check(1, 1, 0, Refill::Greedy, Err("per is 0 ms"));
        check(1, 1, MAX_FILL_MS + 1, Refill::Greedy, Err("366 days"));
        check(1 << 50, 3, 1_000, Refill::Greedy, Err("2^53"));
        check(1, (1 << 53) + 1, 1, Refill::Greedy, Err("2^53"));
        check(367, 1, 86_400_000, Refill::Greedy, Err("takes 367 days to fill"));
        check(3, 1, MAX_FILL_MS / 2, Refill::Interval, Err("takes 549 days to fill"));
    }

    #[test]
    fn the_largest_exact_bucket_is_allowed() {
        check(1 << 53, 1 << 53, 1, Refill::Greedy, Ok((1 << 53, 1, 1)));
        check(366, 1, 86_400_000, Refill::Greedy, Ok((1, 86_400_000, MAX_FILL_MS)));
        check(1, 1, MAX_FILL_MS, Refill::Interval, Ok((1, MAX_FILL_MS, MAX_FILL_MS)));
    }
}
