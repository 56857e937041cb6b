//! Which failures to log: enough for an operator to see what is wrong, never a line per request.

use sluicegate_wire::Name;

use crate::{Failure, FailureKind};

/// Lets through at most one line in ten seconds and counts the rest.
#[derive(Debug, Default)]
pub struct FailureLog {
    last_ms: Option<u64>,
    held_back: u64,
}

impl FailureLog {
    /// The shortest time between two lines, in ms.
    pub const INTERVAL_MS: u64 = 10_000;

    /// Takes note of a failure at `now_ms`, by any clock in ms; the line to log now, if any.
    pub fn note(&mut self, now_ms: u64, rule: &Name, failure: &Failure) -> Option<String> {
        self.tell(now_ms, rule, failure, "the service gave no answer", "the failure verdict holds")
    }

    /// As [`note`](Self::note), of a lease.
    pub(crate) fn note_lease(&mut self, now_ms: u64, rule: &Name, failure: &Failure) -> Option<String> {
        self.tell(now_ms, rule, failure, "there is no lease", "each request is asked about")
    }

    fn tell(&mut self, now_ms: u64, rule: &Name, failure: &Failure, what: &str, so: &str) -> Option<String> {
        // What an open breaker says would hide why it opened. By the absolute difference, so that a clock set back delays
        // nothing.
        let told = failure.kind == FailureKind::BreakerOpen;
        if told || self.last_ms.is_some_and(|last_ms| now_ms.abs_diff(last_ms) < Self::INTERVAL_MS) {
            self.held_back = self.held_back.saturating_add(1);
            return None;
        }
        self.last_ms = Some(now_ms);
        let held_back = std::mem::take(&mut self.held_back);
        let more = if held_back == 0 { String::new() } else { format!(" ({held_back} more since the last line)") };
        let Failure { kind, detail } = failure;
        Some(format!("rule {rule}: {what}: {kind}: {detail}; {so}{more}"))
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn one_line_in_ten_seconds_and_a_count_of_the_rest() {
        let mut log = FailureLog::default();
        let mut note = |now_ms| {
            let failure = Failure::new(FailureKind::Timeout, "status 504");
            log.note(now_ms, &"login".parse().unwrap(), &failure)
        };
        let first = note(1_000_000).unwrap();
        assert!(first.contains("login") && first.contains("timeout") && !first.contains("more"), "{first}");
        assert_eq!(note(1_000_001), None);
        assert_eq!(note(1_009_999), None);
        assert!(note(1_010_000).unwrap().contains("(2 more"));
        let opened = Failure::new(FailureKind::BreakerOpen, "");
        assert_eq!(log.note(1_100_000, &"login".parse().unwrap(), &opened), None);
        let mut note = |now_ms| log.note(now_ms, &"login".parse().unwrap(), &Failure::new(FailureKind::Timeout, ""));
        assert!(note(1_100_001).unwrap().contains("(1 more"));
        // A clock set back by an hour.
        assert!(note(0).is_some());
    }
}
