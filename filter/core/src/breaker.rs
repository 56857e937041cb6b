//! The breaker of one worker: while the service is out of reach its verdict comes at once, without a callout.
//!
//! Consecutive failures open it. After a while one request at a time is let through as a probe: its success closes the
//! breaker, its failure keeps it open for as long again. Consecutive rather than a share of a window: a share needs a
//! least number of requests to mean anything, which a quiet worker never reaches, and one good answer in a row of five
//! means that most requests are better off asking.

use crate::{FailureKind, Span, Timeout};

/// When a breaker opens and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Failures in a row that open it; 0 never does.
    pub failures: u32,
    /// The time until a probe.
    pub open_for: Span,
}

impl Default for BreakerConfig {
    fn default() -> Self {
        Self { failures: 5, open_for: Span::SECOND }
    }
}

/// The state of one worker's breaker. Times are ms of any one clock.
#[derive(Debug)]
pub(crate) struct Breaker {
    config: BreakerConfig,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed {
        failures: u32,
    },
    Open {
        since_ms: u64,
        for_ms: u64,
    },
    /// A probe is under way; one that never comes back is given up after `for_ms`.
    Probing {
        since_ms: u64,
        for_ms: u64,
    },
}

/// Permission for one callout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permit {
    /// The breaker is closed.
    Normal,
    /// This callout finds out whether the service is back.
    Probe,
}

/// What the proxy adds to the time of a callout, in ms, at most: a busy worker hears of a timeout late.
const SLACK_MS: u64 = 1000;

impl Breaker {
    pub(crate) const fn new(config: BreakerConfig) -> Self {
        Self { config, state: State::Closed { failures: 0 } }
    }

    pub(crate) const fn is_open(&self) -> bool {
        !matches!(self.state, State::Closed { .. })
    }

    /// Permission to ask at `now_ms`, with this timeout; none while the breaker is open.
    pub(crate) fn admit(&mut self, now_ms: u64, timeout: Timeout) -> Option<Permit> {
        match self.state {
            State::Closed { .. } => Some(Permit::Normal),
            // By the absolute difference, so that a clock set back keeps nothing open.
            State::Open { since_ms, for_ms } | State::Probing { since_ms, for_ms }
                if now_ms.abs_diff(since_ms) < for_ms =>
            {
                None
            }
            State::Open { .. } | State::Probing { .. } => {
                let for_ms = u64::from(timeout.ms()).saturating_add(SLACK_MS);
                self.state = State::Probing { since_ms: now_ms, for_ms };
                Some(Permit::Probe)
            }
        }
    }

    /// A callout ended: with an answer, or with this kind of failure. A marked 4xx says that the service is there, and
    /// nothing else.
    pub(crate) fn settle(&mut self, permit: Permit, failure: Option<FailureKind>, now_ms: u64) {
        let probed = permit == Permit::Probe;
        match (failure, &mut self.state) {
            (None, _) => self.state = State::Closed { failures: 0 },
            (Some(FailureKind::Config), _) if probed => self.state = State::Closed { failures: 0 },
            (Some(FailureKind::Config | FailureKind::BreakerOpen), _) => {}
            (Some(_), State::Closed { failures }) => {
                *failures = failures.saturating_add(1);
                if *failures == self.config.failures {
                    self.open(now_ms);
                }
            }
            (Some(_), State::Probing { .. }) if probed => self.open(now_ms),
            // Asked before it opened.
            (Some(_), State::Open { .. } | State::Probing { .. }) => {}
        }
    }

    /// The request of a callout is gone, and with it the answer: the next request is the probe.
    pub(crate) fn abandon(&mut self, permit: Permit, now_ms: u64) {
        if permit == Permit::Probe && matches!(self.state, State::Probing { .. }) {
            self.state = State::Open { since_ms: now_ms, for_ms: 0 };
        }
    }

    fn open(&mut self, now_ms: u64) {
        self.state = State::Open { since_ms: now_ms, for_ms: self.config.open_for.ms() };
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    const TIMEOUT: Timeout = Timeout::DEFAULT;
    const FAILED: Option<FailureKind> = Some(FailureKind::Timeout);

    /// A breaker of three failures and 1 s that opened at 10 s.
    fn opened() -> Breaker {
        let mut breaker = Breaker::new(BreakerConfig { failures: 3, open_for: Span::SECOND });
        for _ in 0..3 {
            assert_eq!(breaker.admit(10_000, TIMEOUT), Some(Permit::Normal));
            breaker.settle(Permit::Normal, FAILED, 10_000);
        }
        assert!(breaker.is_open());
        breaker
    }

    #[test]
    fn failures_in_a_row_open_it_and_one_answer_starts_anew() {
        let mut breaker = Breaker::new(BreakerConfig { failures: 3, open_for: Span::SECOND });
        for _ in 0..10 {
            for outcome in [FAILED, FAILED, None] {
                breaker.settle(Permit::Normal, outcome, 0);
            }
        }
        assert!(!breaker.is_open());
        assert_eq!(opened().admit(10_999, TIMEOUT), None);
    }

    #[test]
    fn what_a_healthy_service_says_about_a_bad_question_does_not_count() {
        let mut breaker = Breaker::new(BreakerConfig::default());
        for _ in 0..100 {
            breaker.settle(Permit::Normal, Some(FailureKind::Config), 0);
        }
        assert!(!breaker.is_open());
        let mut breaker = opened();
        assert_eq!(breaker.admit(11_000, TIMEOUT), Some(Permit::Probe));
        breaker.settle(Permit::Probe, Some(FailureKind::Config), 11_000);
        assert!(!breaker.is_open());
    }

    #[test]
    fn one_probe_at_a_time_decides() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(11_000, TIMEOUT), Some(Permit::Probe));
        assert_eq!(breaker.admit(11_001, TIMEOUT), None);
        breaker.settle(Permit::Probe, FAILED, 11_025);
        assert_eq!(breaker.admit(12_024, TIMEOUT), None);
        assert_eq!(breaker.admit(12_025, TIMEOUT), Some(Permit::Probe));
        breaker.settle(Permit::Probe, None, 12_030);
        assert_eq!(breaker.admit(12_030, TIMEOUT), Some(Permit::Normal));
        assert_eq!(breaker.admit(12_030, TIMEOUT), Some(Permit::Normal));
    }

    #[test]
    fn late_failures_of_others_change_nothing() {
        let mut breaker = opened();
        breaker.settle(Permit::Normal, FAILED, 10_999);
        assert_eq!(breaker.admit(11_000, TIMEOUT), Some(Permit::Probe));
        breaker.settle(Permit::Normal, FAILED, 11_001);
        assert_eq!(breaker.admit(11_002, TIMEOUT), None);
        breaker.settle(Permit::Probe, None, 11_003);
        assert!(!breaker.is_open());
    }

    #[test]
    fn a_probe_that_never_comes_back_is_followed_by_another() {
        let mut breaker = opened();
        assert_eq!(breaker.admit(11_000, TIMEOUT), Some(Permit::Probe));
        breaker.abandon(Permit::Normal, 11_001);
        assert_eq!(breaker.admit(11_001, TIMEOUT), None);
        breaker.abandon(Permit::Probe, 11_001);
        assert_eq!(breaker.admit(11_001, TIMEOUT), Some(Permit::Probe));
        assert_eq!(breaker.admit(12_025, TIMEOUT), None);
        assert_eq!(breaker.admit(12_026, TIMEOUT), Some(Permit::Probe));
    }

    #[test]
    fn a_clock_set_back_keeps_nothing_open() {
        assert_eq!(opened().admit(5_000, TIMEOUT), Some(Permit::Probe));
    }

    #[test]
    fn no_number_of_failures_opens_one_that_is_off() {
        let mut breaker = Breaker::new(BreakerConfig { failures: 0, open_for: Span::SECOND });
        for _ in 0..100 {
            breaker.settle(Permit::Normal, FAILED, 0);
        }
        assert!(!breaker.is_open());
    }
}
