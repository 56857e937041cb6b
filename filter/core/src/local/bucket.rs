//! One token bucket, in the arithmetic of `lua/parts/greedy.lua`: exact integers, refilled all the time.

/// The numbers of a rule's local buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLimit {
    capacity: u64,
    /// Units that come in each ms; a token is `per_ms` of them. Reduced by what they have in common.
    refill: u64,
    per_ms: u64,
    slots: u32,
}

/// Why numbers are not those of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocalLimitError {
    /// Nothing would ever pass.
    #[error("capacity and refill are at least 1")]
    Zero,
    /// Could not be counted exactly.
    #[error("too large to be counted exactly: capacity times per, in ms and divided by refill, is at most 2^53")]
    TooLarge,
    /// Too few or too many slots.
    #[error("slots is a whole number from {} to {}", LocalLimit::MIN_SLOTS, LocalLimit::MAX_SLOTS)]
    Slots,
}

/// What a bucket held at an instant: exactly `tokens` tokens, `part / refill` ms before `last_ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bucket {
    pub(super) tokens: u64,
    pub(super) last_ms: u64,
    pub(super) part: u64,
}

impl LocalLimit {
    /// Slots when nothing is said.
    pub const DEFAULT_SLOTS: u32 = 4096;
    /// The fewest slots.
    pub const MIN_SLOTS: u32 = 32;
    /// The most slots.
    pub const MAX_SLOTS: u32 = 65_536;

    const MAX_UNITS: u64 = 1 << 53;

    /// Buckets of `capacity` tokens that refill with `refill` tokens in `per_ms`, in a table of about `slots` slots.
    pub fn new(capacity: u64, refill: u64, per_ms: u64, slots: u32) -> Result<Self, LocalLimitError> {
        if capacity == 0 || refill == 0 || per_ms == 0 {
            return Err(LocalLimitError::Zero);
        }
        if !(Self::MIN_SLOTS..=Self::MAX_SLOTS).contains(&slots) {
            return Err(LocalLimitError::Slots);
        }
        let common = greatest_common_divisor(refill, per_ms);
        let (refill, per_ms) = (divide(refill, common).0, divide(per_ms, common).0);
        let countable = |units: Option<u64>| units.is_some_and(|units| units <= Self::MAX_UNITS);
        if !countable(capacity.checked_mul(per_ms)) || !countable(Some(refill)) {
            return Err(LocalLimitError::TooLarge);
        }
        Ok(Self { capacity, refill, per_ms, slots })
    }

    /// The most tokens of one bucket.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The slots asked for.
    pub(super) const fn slots(&self) -> u32 {
        self.slots
    }

    pub(super) const fn full(&self, now_ms: u64) -> Bucket {
        Bucket { tokens: self.capacity, last_ms: now_ms, part: 0 }
    }

    pub(super) const fn is_full(&self, bucket: &Bucket) -> bool {
        bucket.tokens >= self.capacity
    }

    /// The bucket as it is at `now_ms`. A clock behind the bucket's time adds nothing; one that went back by more than a
    /// whole refill is taken as the new time.
    pub(super) fn refilled(&self, bucket: Bucket, now_ms: u64) -> Bucket {
        let Bucket { tokens, mut last_ms, part } = bucket;
        if last_ms.saturating_sub(now_ms) > self.units_ms(self.capacity.saturating_mul(self.per_ms)) {
            last_ms = now_ms;
        }
        let now_ms = now_ms.max(last_ms);
        if tokens >= self.capacity {
            return self.full(now_ms);
        }
        // Kept from a faster refill: at most one ms of this one's.
        let part = part.min(self.refill.saturating_sub(1));
        let elapsed = now_ms.saturating_sub(last_ms);
        let missing = self.capacity.saturating_sub(tokens).saturating_mul(self.per_ms).saturating_sub(part);
        if elapsed >= self.units_ms(missing) {
            return self.full(now_ms);
        }
        // Less than what is missing, so within 2^53.
        let (gained, left) = divide(elapsed.saturating_mul(self.refill).saturating_add(part), self.per_ms);
        if gained == 0 {
            return Bucket { tokens, last_ms, part };
        }
        let (since, rest) = divide(left, self.refill);
        Bucket { tokens: tokens.saturating_add(gained), last_ms: now_ms.saturating_sub(since), part: rest }
    }

    /// The ms until a [refilled](Self::refilled) bucket has `cost` tokens, at least 1; none when it never has.
    pub(super) fn wait_ms(&self, bucket: &Bucket, cost: u64, now_ms: u64) -> Option<u64> {
        if cost > self.capacity {
            return None;
        }
        let elapsed = now_ms.saturating_sub(bucket.last_ms).saturating_mul(self.refill).saturating_add(bucket.part);
        let wanted = cost.saturating_sub(bucket.tokens).saturating_mul(self.per_ms);
        Some(self.units_ms(wanted.saturating_sub(elapsed)).max(1))
    }

    /// The ms in which so many units come in, rounded up.
    fn units_ms(&self, units: u64) -> u64 {
        let (ms, left) = divide(units, self.refill);
        ms.saturating_add(u64::from(left > 0))
    }
}

/// Quotient and rest. The divisors here are never 0.
fn divide(dividend: u64, divisor: u64) -> (u64, u64) {
    (dividend.checked_div(divisor).unwrap_or(0), dividend.checked_rem(divisor).unwrap_or(0))
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, divide(a, b).1);
    }
    a
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn limit(capacity: u64, refill: u64, per_ms: u64) -> LocalLimit {
        LocalLimit::new(capacity, refill, per_ms, LocalLimit::DEFAULT_SLOTS).unwrap()
    }

    fn bucket(tokens: u64, last_ms: u64) -> Bucket {
        Bucket { tokens, last_ms, part: 0 }
    }

    #[test]
    fn a_slow_bucket_that_is_asked_often_never_starves() {
        let limit = limit(5, 1, 1000);
        let mut slow = bucket(0, 0);
        for now_ms in 1..=3500 {
            slow = limit.refilled(slow, now_ms);
        }
        assert_eq!(slow.tokens, 3);
        assert_eq!(limit.wait_ms(&slow, 4, 3500), Some(500));
        assert_eq!(limit.wait_ms(&slow, 6, 3500), None);
    }

    #[test]
    fn what_does_not_divide_evenly_is_kept() {
        // 3 tokens in 7 ms, asked every ms.
        let limit = limit(1000, 3, 7);
        let mut bucket = bucket(0, 0);
        for now_ms in 1..=700 {
            bucket = limit.refilled(bucket, now_ms);
            assert_eq!(bucket.tokens, now_ms * 3 / 7, "{now_ms} ms");
        }
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing_and_takes_nothing() {
        let limit = limit(10, 10, 1000);
        assert_eq!(limit.refilled(bucket(4, 5_000), 4_500), bucket(4, 5_000));
        assert_eq!(limit.refilled(bucket(4, 5_000), 3_000), bucket(4, 3_000));
        assert_eq!(limit.refilled(bucket(4, 5_000), 3_100).tokens, 4);
        assert_eq!(limit.wait_ms(&bucket(4, 5_000), 5, 4_500), Some(100));
    }

    #[test]
    fn numbers_that_can_not_be_counted_are_refused() {
        let new = |capacity, refill, per_ms| LocalLimit::new(capacity, refill, per_ms, 64).err();
        assert_eq!(new(0, 1, 1), Some(LocalLimitError::Zero));
        assert_eq!(new(1, 0, 1), Some(LocalLimitError::Zero));
        assert_eq!(new(1 << 53, 1, 1000), Some(LocalLimitError::TooLarge));
        assert_eq!(new(1 << 53, 1000, 1000), None);
        assert_eq!(LocalLimit::new(1, 1, 1, 31).err(), Some(LocalLimitError::Slots));
        assert_eq!(LocalLimit::new(1, 1, 1, 65_537).err(), Some(LocalLimitError::Slots));
    }
}
