//! What a limit admits in the long run, held against its bound and nothing else: no model here knows how the scripts
//! count.
//!
//! `SLUICEGATE_TAKES` is how many takes to make in all; 1,000,000 unless set.

use std::{collections::VecDeque, env, sync::Arc};

use sluicegate_lua::{Call, Every, Policy, Quota, Rule, Take};

use crate::{
    case::unit,
    policies::{HOUR_MS, greedy, interval, one},
    rig::Rig,
};

/// This share of all takes, in percent.
fn takes(percent: u64) -> u64 {
    let all = env::var("SLUICEGATE_TAKES").map_or(1_000_000, |count| count.parse().expect("a number of takes"));
    all * percent / 100
}

/// Times have 13 digits in the store: no run goes on for longer than this.
const HORIZON_MS: u64 = 5_000_000_000_000;

/// Takes joined in one call, where they are.
const JOINED: u64 = 32;

/// One limit under demand.
struct Run {
    rig: Rig,
    policy: Arc<Policy>,
    single: Call,
    joined: Call,
    start_ms: u64,
    takes: u64,
    admitted: u64,
    /// When recent tokens were admitted, and how many before.
    recent: VecDeque<(u64, u64)>,
    random: u64,
}

impl Run {
    fn new(rule: Rule) -> Self {
        let (rig, policy) = (Rig::new(), one(rule));
        let (single, joined) = (call(&rig, &policy, 1, 1), call(&rig, &policy, JOINED, 1));
        let start_ms = rig.now_ms();
        Self { rig, policy, single, joined, start_ms, takes: 0, admitted: 0, recent: VecDeque::new(), random: 1 }
    }

    fn passed_ms(&self) -> u64 {
        self.rig.now_ms() - self.start_ms
    }

    /// One take of one.
    fn take(&mut self) -> bool {
        self.takes += 1;
        let granted = granted(&self.rig.run(&self.single));
        self.note(granted);
        granted == 1
    }

    /// Several takes in one call: how many were granted.
    fn take_of(&mut self, takes: u64, cost: u64) -> u64 {
        self.takes += takes;
        let granted = granted(&self.rig.run(&call(&self.rig, &self.policy, takes, cost)));
        self.note(granted * cost);
        granted
    }

    /// Takes until one is denied: one by one, or many in a call.
    fn drain(&mut self) {
        if self.random(2) == 0 {
            while self.take() {}
            return;
        }
        loop {
            self.takes += JOINED;
            let granted = granted(&self.rig.run(&self.joined));
            self.note(granted);
            if granted < JOINED {
                return;
            }
        }
    }

    fn note(&mut self, tokens: u64) {
        if tokens > 0 {
            if self.recent.len() == 64 {
                self.recent.pop_front();
            }
            self.recent.push_back((self.rig.now_ms(), self.admitted));
            self.admitted += tokens;
        }
    }

    /// In every stretch of time that begins with one of the recent takes, at most `bound` of its length was admitted.
    fn assert_bound(&self, bound: impl Fn(u128) -> u128) {
        for (since_ms, before) in self.recent.iter().copied().chain([(self.start_ms, 0)]) {
            let passed_ms = u128::from(self.rig.now_ms() - since_ms);
            let admitted = u128::from(self.admitted - before);
            assert!(admitted <= bound(passed_ms), "{admitted} in {passed_ms} ms from {:?}", self.policy.limits());
        }
    }

    /// A number below `limit`, the same in every run: xorshift64*.
    fn random(&mut self, limit: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}

fn call(rig: &Rig, policy: &Arc<Policy>, takes: u64, cost: u64) -> Call {
    Take { takes, units: vec![unit(&[(policy, &rig.keys, cost)], true)] }.call(rig.now_ms())
}

/// The second number of the reply.
fn granted(reply: &[i64]) -> u64 {
    reply[1].try_into().unwrap()
}

/// Drained again and again, a greedy bucket has admitted `capacity + rate * t` to the token, at every ms that is asked
/// about and at the very ms at which a token is due.
fn check_greedy(capacity: u64, refill: u64, per_ms: u64, takes: u64) {
    let mut run = Run::new(greedy(capacity, refill, per_ms));
    let bound = |passed_ms: u128| u128::from(capacity) + passed_ms * u128::from(refill) / u128::from(per_ms);
    // Never so long that it fills: what comes in then is lost.
    let fill_ms = (capacity - 1) * per_ms / refill;
    let longest_ms = (fill_ms / 2).min(2 * HORIZON_MS / takes).max(1);
    run.drain();
    while run.takes < takes {
        let due_ms = ((run.admitted + 1 - capacity) * per_ms).div_ceil(refill);
        let wait_ms = due_ms - run.passed_ms();
        let pause_ms = match run.random(4) {
            0 if wait_ms > 1 && wait_ms <= longest_ms => wait_ms - 1,
            1 if wait_ms <= longest_ms => wait_ms,
            _ => 1 + run.random(longest_ms),
        };
        run.rig.pause(pause_ms);
        run.drain();
        assert_eq!(u128::from(run.admitted), bound(run.passed_ms().into()), "after {} ms", run.passed_ms());
        run.assert_bound(bound);
    }
    run.rig.assert_tidy();
}

#[test]
fn greedy_buckets_admit_capacity_and_rate_to_the_token() {
    let rates = [
        (5, 7, 3_000),
        (3, 1, 86_400_500),
        (200, 1_000, 60_000),
        (9, 3, 7),
        (2, 1, 1),
        (31, 13, 17),
        (1_000, 999, 1_000),
        (10, 1, 999_983),
    ];
    for (capacity, refill, per_ms) in rates {
        check_greedy(capacity, refill, per_ms, takes(70) / rates.len() as u64);
    }
}

/// A bucket of one holds no more than that: what is due at 2 1/3 ms is taken at 3, and the rest of that ms is lost to it.
/// Where ms divide evenly nothing is.
#[test]
fn a_bucket_of_one_admits_its_rate() {
    let mut run = Run::new(greedy(1, 1, 86_400_500));
    for _ in 0..takes(2) / 3 {
        assert!(run.take());
        run.rig.pause(86_400_499);
        assert!(!run.take());
        run.rig.pause(1);
    }
    run.assert_bound(|passed_ms| 1 + passed_ms / 86_400_500);
}

/// Whatever is asked and however long nothing is, in between no stretch of time admits more.
#[test]
fn no_stretch_of_time_admits_more_than_its_bound() {
    let rates = [(5, 7, 3_000), (3, 1, 86_400_500), (1, 3, 7), (50, 1_000, 60_000), (4, 9, 2)];
    for (capacity, refill, per_ms) in rates {
        for rule in [greedy(capacity, refill, per_ms), interval(capacity, refill, per_ms)] {
            let mut run = Run::new(rule.clone());
            let Rule::Bucket(bucket) = rule else { unreachable!("both are") };
            let longest_ms = (2 * bucket.fill_ms()).min(HORIZON_MS / takes(1)).max(2);
            while run.takes < takes(10) / (2 * rates.len() as u64) {
                let (takes, cost) = (1 + run.random(3 * capacity), 1 + run.random(capacity + 1));
                run.take_of(takes, cost);
                if run.random(3) == 0 {
                    let most_ms = if run.random(4) == 0 { longest_ms } else { 1 + longest_ms / 8 };
                    let pause_ms = run.random(most_ms);
                    run.rig.pause(pause_ms);
                }
                let (capacity, refill, per_ms) = (u128::from(capacity), u128::from(refill), u128::from(per_ms));
                match bucket.mode() {
                    sluicegate_lua::Refill::Greedy => run.assert_bound(|ms| capacity + ms * refill / per_ms),
                    sluicegate_lua::Refill::Interval => {
                        run.assert_bound(|ms| capacity + refill * ms.div_ceil(per_ms));
                    }
                }
            }
        }
    }
}

/// Asked more often than it refills, an interval bucket that never fills keeps to the steps from its first take.
#[test]
fn interval_buckets_admit_capacity_and_whole_steps() {
    let rates = [(5, 2, 1_000), (50, 7, 3_000), (3, 1, 86_400_500), (7, 3, 7)];
    for (capacity, refill, per_ms) in rates {
        let mut run = Run::new(interval(capacity, refill, per_ms));
        let longest_ms = per_ms.min(HORIZON_MS / takes(10));
        run.drain();
        while run.takes < takes(10) / rates.len() as u64 {
            let pause_ms = 1 + run.random(longest_ms);
            run.rig.pause(pause_ms);
            run.drain();
            assert_eq!(run.admitted, capacity + refill * (run.passed_ms() / per_ms));
        }
    }
}

#[test]
fn a_quota_admits_itself_in_each_window() {
    let mut run = Run::new(Quota::new(7, Every::Minute, "UTC").unwrap().into());
    let (mut window, mut before) = (run.rig.now_ms() / 60_000, 0);
    while run.takes < takes(5) {
        let takes = 1 + run.random(8);
        run.take_of(takes, 1);
        let pause_ms = run.random(8_000);
        run.rig.pause(pause_ms);
        if run.rig.now_ms() / 60_000 > window {
            assert!(run.admitted - before == 7, "{} in one window", run.admitted - before);
            (window, before) = (run.rig.now_ms() / 60_000, run.admitted);
        }
    }
}

/// Denied calls push nothing away: the token comes at its ms, though the bucket is asked at each one before.
#[test]
fn a_slow_rate_polled_fast_never_starves() {
    for rule in [greedy(1, 1, 10_000), interval(1, 1, 10_000), greedy(2, 3, 30_000)] {
        let mut run = Run::new(rule);
        run.drain();
        let full = run.admitted;
        for _ in 0..takes(3) / 3 {
            run.rig.pause(1);
            run.take();
            assert_eq!(run.admitted, full + run.passed_ms() / 10_000);
        }
    }
}

/// Only time that passes forward brings tokens, whichever way the clock jumps.
#[test]
fn clock_steps_mint_nothing() {
    for (capacity, refill, per_ms) in [(5, 7, 3_000), (3, 1, 1_000), (20, 3, 7)] {
        for rule in [greedy(capacity, refill, per_ms), interval(capacity, refill, per_ms)] {
            let mut run = Run::new(rule);
            let longest_ms = 2 * capacity * per_ms / refill;
            run.rig.pause(HOUR_MS);
            run.start_ms = run.rig.now_ms();
            let mut forward_ms = 0;
            for _ in 0..takes(1) / 2 {
                let jump_ms = run.random(longest_ms);
                // A stretch of the horizon is left to go back in.
                if run.random(3) == 0 && run.rig.now_ms() > run.start_ms + jump_ms {
                    run.rig.step_back(jump_ms);
                } else {
                    run.rig.pause(jump_ms);
                    forward_ms += jump_ms;
                }
                run.takes += 1;
                run.admitted += granted(&run.rig.run(&run.single));
                let bound = capacity + refill * forward_ms.div_ceil(per_ms);
                assert!(run.admitted <= bound, "{} in {forward_ms} ms forward", run.admitted);
            }
        }
    }
}

/// Callers on threads of their own, at one instant: not one token more.
#[test]
fn parallel_takes_admit_the_capacity() {
    let (rig, policy) = (Rig::new(), one(greedy(777, 1, HOUR_MS)));
    let (single, joined) = (call(&rig, &policy, 1, 1), call(&rig, &policy, 7, 1));
    let (memory, single, joined) = (&rig.memory, &single, &joined);
    let admitted: u64 = std::thread::scope(|scope| {
        let caller = || {
            (0..100).map(|_| granted(&memory.run(single).unwrap()) + granted(&memory.run(joined).unwrap())).sum::<u64>()
        };
        let callers: Vec<_> = (0..8).map(|_| scope.spawn(caller)).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum()
    });
    assert_eq!(admitted, 777);
}

/// Near 2^53 every unit counts: whatever is there is taken at once, and the sum is exact.
#[test]
fn the_largest_numbers_are_exact() {
    let numbers = [((1 << 53) / 1_000, 333_333_333, 1_000), (1 << 53, 1 << 21, 1), ((1 << 53) / 7, 1_000_003, 7)];
    for (capacity, refill, per_ms) in numbers {
        let mut run = Run::new(greedy(capacity, refill, per_ms));
        assert_eq!(run.take_of(1, capacity - 1), 1);
        for _ in 0..takes(1) / 10 {
            let pause_ms = 1 + run.random(100_000);
            run.rig.pause(pause_ms);
            let look = run.rig.run(&call(&run.rig, &run.policy, 1, 0));
            assert_eq!(run.take_of(1, look[5].try_into().unwrap()), 1);
            let passed_ms = u128::from(run.passed_ms());
            let expected = u128::from(capacity) + passed_ms * u128::from(refill) / u128::from(per_ms);
            assert_eq!(u128::from(run.admitted), expected);
        }
    }
}
