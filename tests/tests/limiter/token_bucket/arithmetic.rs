//! The same arithmetic as the service's, with rates that are any decimal fraction: within one token and one second of
//! exact rationals.

use num_rational::Ratio;

use super::{START_MS, call, on_both_stores, take};
use crate::{case::Case, policies::DAY_MS, store::Store};

type Exact = Ratio<i128>;

on_both_stores![
    whole_and_fractional_rates_agree_with_exact_rationals,
    reported_numbers,
    a_changed_capacity_clamps,
    the_largest_capacities_refill,
];

/// A bucket of exact rationals; it follows the script's decisions, and judges them.
struct Bucket {
    capacity: Exact,
    per_ms: Exact,
    tokens: Exact,
    last_ms: u64,
}

impl Bucket {
    fn new(capacity: u64, rate: &str) -> Self {
        let capacity = Exact::from(i128::from(capacity));
        Self { capacity, per_ms: decimal(rate) / 1_000, tokens: capacity, last_ms: START_MS }
    }

    /// Judges one take's reply.
    fn check(&mut self, now_ms: u64, cost: u64, reply: [i64; 3]) {
        let passed_ms = i128::from(now_ms - self.last_ms);
        self.tokens = (self.tokens + self.per_ms * passed_ms).min(self.capacity);
        self.last_ms = now_ms;
        let cost = Exact::from(i128::from(cost));
        let [allowed, remaining, wait_s] = reply.map(i128::from);
        let said = format!("{reply:?} to {cost} with {} of {} at {now_ms}", self.tokens, self.capacity);
        let one = Exact::from(1);
        if allowed == 1 {
            assert!(self.tokens > cost - one, "{said}");
            assert_eq!(wait_s, 0, "{said}");
            self.tokens -= cost;
        } else {
            assert_eq!(allowed, 0, "{said}");
            assert!(self.tokens < cost + one, "{said}");
            if cost > self.capacity {
                assert_eq!(wait_s, -1, "{said}");
            } else {
                let exact_s = ((cost - self.tokens) / self.per_ms / 1_000).max(Exact::from(0));
                assert!((exact_s - wait_s).ceil().to_integer().abs() <= 1 && wait_s >= 1, "{said}, wait {exact_s}");
            }
        }
        assert!((self.tokens.floor().to_integer() - remaining).abs() <= 1 && remaining >= 0, "{said}");
    }
}

/// A decimal fraction, exactly.
fn decimal(text: &str) -> Exact {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits: i128 = format!("{whole}{part}").parse().unwrap();
    Ratio::new(digits, 10_i128.pow(part.len().try_into().unwrap()))
}

/// Calls with a caller's clock at random distances, many of them with denials between.
fn check(case: &Case, capacity: u64, rate: &str, calls: u64, random: &mut u64) {
    let mut bucket = Bucket::new(capacity, rate);
    // About two tokens, or a tenth of the bucket, and now and then all of it.
    let token_ms = (Exact::from(1) / bucket.per_ms).ceil().to_integer().try_into().unwrap_or(u64::MAX);
    let fill_ms = token_ms.saturating_mul(capacity).min(30 * DAY_MS);
    let mut now_ms = START_MS;
    for index in 0..calls {
        let pause_ms = match index % 8 {
            0 => fill_ms / 10,
            7 if index % 64 == 63 => 2 * fill_ms,
            _ => 2 * token_ms.min(DAY_MS),
        };
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let pause_ms = (*random >> 33) % (pause_ms + 1);
        now_ms += pause_ms;
        if let Store::Embedded(rig) = &case.store {
            rig.pause(pause_ms);
        }
        let cost = [1, 1, 2, capacity / 3 + 1, 0, 1, capacity, capacity + 1][(*random >> 13) as usize % 8];
        bucket.check(now_ms, cost, take(case, &capacity.to_string(), rate, now_ms, cost));
    }
}

/// A token of each takes over a second: no key of a real store expires while its caller's clock says otherwise.
fn whole_and_fractional_rates_agree_with_exact_rationals(case: &Case) {
    let mut random = 42;
    for (capacity, rate) in [
        (10, "0.1"),
        (5, "0.3333333333333333"),
        (7, "0.2333333333333333"),
        (1_000, "0.16666666666666666"),
        (3, "0.000011574007337920652"),
        (100, "0.07"),
        (1_000_000, "0.31415926535897931"),
    ] {
        check(case, capacity, rate, 250, &mut random);
        case.delete(super::KEY);
    }
}

/// Any rate at all, for long, under a clock that moves with the caller's.
#[test]
fn a_long_run_does_not_drift() {
    super::run(Store::embedded(), |case| {
        let mut random = 7;
        for (capacity, rate) in [
            (10, "2.3333333333333335"),
            (5, "7.77"),
            (3, "428.57142857142856"),
            (1, "0.0000115740"),
            (200, "16.666666666666668"),
            (1_000_000_000, "12345.678"),
            (1_000_000_000_000, "0.7"),
            (100_000_000_000_000, "99999.9"),
        ] {
            check(case, capacity, rate, 4_000, &mut random);
            case.delete(super::KEY);
        }
    });
}

/// Drained again and again at 7 per 3 s for a month, as a double writes it: `capacity + rate * t` to the token.
#[test]
fn seven_per_three_seconds_is_just_that() {
    super::run(Store::embedded(), |case| {
        let (mut admitted, mut now_ms) = (0, START_MS);
        while now_ms < START_MS + 30 * DAY_MS {
            let left = take(case, "10000", "2.3333333333333335", now_ms, 0)[1].try_into().unwrap();
            take(case, "10000", "2.3333333333333335", now_ms, left);
            admitted += left;
            assert_eq!(admitted, 10_000 + (now_ms - START_MS) * 7 / 3_000);
            now_ms += 3_599_999;
            case.pass(3_599_999);
        }
    });
}

fn reported_numbers(case: &Case) {
    let at = |after_ms: u64, capacity: &str, rate: &str, cost: u64, expected: [i64; 3]| {
        assert_eq!(
            take(case, capacity, rate, START_MS + after_ms, cost),
            expected,
            "{cost} of {capacity} at {after_ms}"
        );
    };
    // spring-cloud-gateway PR 591: denied calls moved the last refill.
    for index in 0..6 {
        let reply = if index % 2 == 0 { [1, 0, 0] } else { [0, 0, 1] };
        at(index * 600, "1", "1", 1, reply);
    }
    // upstash PR 156: a negative balance.
    case.delete(super::KEY);
    at(100_000, "10", "0.1", 8, [1, 2, 0]);
    at(100_000, "10", "0.1", 5, [0, 2, 30]);
    at(100_000, "10", "0.1", 11, [0, 2, -1]);
    at(109_999, "10", "0.1", 5, [0, 2, 21]);
    at(110_000, "10", "0.1", 5, [0, 3, 20]);
    at(130_000, "10", "0.1", 5, [1, 0, 0]);
}

fn a_changed_capacity_clamps(case: &Case) {
    assert_eq!(take(case, "100", "0.01", START_MS, 10), [1, 90, 0]);
    assert_eq!(take(case, "200", "0.01", START_MS, 0), [1, 90, 0]);
    assert_eq!(take(case, "50", "0.01", START_MS, 1), [1, 49, 0]);
    assert_eq!(take(case, "100", "0.01", START_MS, 0), [1, 49, 0]);
    assert_eq!(take(case, "16", "0.5", START_MS, 4), [1, 12, 0]);
    assert_eq!(take(case, "16", "50", START_MS, 0), [1, 12, 0]);
}

/// Practically no limit, with a rate that is none either: an emptied bucket refills all the same, and what no integer
/// holds is said with the largest.
fn the_largest_capacities_refill(case: &Case) {
    for (capacity, rate, after_ms) in
        [("1000000000000000", "1", 10_000), ("9007199254740992", "0.5", 20_000), ("1000000000000", "0.001", 10_000_000)]
    {
        let all = capacity.parse().unwrap();
        assert_eq!(take(case, capacity, rate, START_MS, all), [1, 0, 0], "{capacity}");
        assert!(take(case, capacity, rate, START_MS, 1)[2] > 0, "{capacity}");
        assert_eq!(take(case, capacity, rate, START_MS + after_ms, 0), [1, 10, 0], "{capacity}");
        case.delete(super::KEY);
    }
    assert_eq!(take(case, "9007199254740992", "0.000000000001", START_MS, 9_007_199_254_740_992), [1, 0, 0]);
    let reply = call(case, &[super::KEY], &["9007199254740992", "1e-12", "1800000000000", "9007199254740992"]).unwrap();
    assert!(reply[2] > i64::from(u32::MAX), "{reply:?}");
}
