//! Denials of a moment ago, one worker's: the same question is answered again without a callout until its wait is over.
//!
//! Kept by the whole question, so with every policy, subject and cost in it: a cheaper request is not denied by what a
//! dearer one was told, headers are those of the first answer, and no denial that a ban has to count is missed.

use std::collections::BTreeMap;

use sluicegate_wire::{CheckAnswer, CheckRequest, EncodedSubject, LimitResult, Part, Subject};

use crate::Span;

/// How much and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DenyCacheConfig {
    /// The most questions kept; 0 keeps none.
    pub max_entries: usize,
    /// The longest time that a denial is kept: after that a reset or a grant shows.
    pub max_life: Span,
}

impl Default for DenyCacheConfig {
    fn default() -> Self {
        Self { max_entries: 1000, max_life: Span::SECOND }
    }
}

/// The denials of one worker. Times are ms of any one clock.
#[derive(Debug)]
pub(crate) struct DenyCache {
    config: DenyCacheConfig,
    entries: BTreeMap<EncodedSubject, Entry>,
    /// The same by age.
    ages: BTreeMap<u64, EncodedSubject>,
    next_age: u64,
}

#[derive(Debug)]
struct Entry {
    age: u64,
    since_ms: u64,
    life_ms: u64,
    results: Vec<LimitResult>,
}

impl DenyCache {
    pub(crate) const fn new(config: DenyCacheConfig) -> Self {
        Self { config, entries: BTreeMap::new(), ages: BTreeMap::new(), next_age: 0 }
    }

    /// The denial of this question with its waits counted down.
    pub(crate) fn get(&mut self, question: &CheckRequest, now_ms: u64) -> Option<CheckAnswer> {
        if self.entries.is_empty() {
            return None;
        }
        let key = key(question);
        let entry = self.entries.get(&key)?;
        // A clock set back ends it too.
        let elapsed = now_ms.checked_sub(entry.since_ms).filter(|elapsed| *elapsed < entry.life_ms);
        let Some(elapsed) = elapsed else {
            self.remove(&key);
            return None;
        };
        let results = entry.results.iter().map(|result| later(result, elapsed)).collect();
        Some(CheckAnswer { allowed: false, results, charge: None, deny_cache_ms: None })
    }

    /// Keeps a denial for as long as it says.
    pub(crate) fn put(&mut self, question: &CheckRequest, answer: &CheckAnswer, now_ms: u64) {
        let life_ms = answer.deny_cache_ms.unwrap_or(0).min(self.config.max_life.ms());
        if answer.allowed || life_ms == 0 || self.config.max_entries == 0 {
            return;
        }
        let key = key(question);
        self.remove(&key);
        while self.entries.len() >= self.config.max_entries {
            // All live about as long, so the oldest is the first to end anyway.
            let Some((_, oldest)) = self.ages.pop_first() else { break };
            self.entries.remove(&oldest);
        }
        let age = self.next_age;
        self.next_age = self.next_age.saturating_add(1);
        let results = answer.results.iter().filter(|result| !result.shadow).cloned().collect();
        self.ages.insert(age, key.clone());
        self.entries.insert(key, Entry { age, since_ms: now_ms, life_ms, results });
    }

    fn remove(&mut self, key: &EncodedSubject) {
        if let Some(entry) = self.entries.remove(key) {
            self.ages.remove(&entry.age);
        }
    }
}

/// At most 128 bytes for a question of any length: an encoded subject's digest serves for other texts as well.
fn key(question: &CheckRequest) -> EncodedSubject {
    let text = serde_json::to_vec(question).unwrap_or_default();
    Subject::new(vec![Part::bytes(text)]).unwrap_or_else(|_| Subject::text("")).encode(None)
}

/// What the limit says `elapsed` ms later. The tokens stay as they were: whether they come one by one isn't known here.
pub(crate) fn later(result: &LimitResult, elapsed: u64) -> LimitResult {
    let left = |ms: u64| if ms == 0 { 0 } else { ms.saturating_sub(elapsed).max(1) };
    LimitResult {
        retry_after_ms: result.retry_after_ms.map(left),
        next_ms: left(result.next_ms),
        full_ms: left(result.full_ms),
        ..result.clone()
    }
}

#[cfg(test)]
mod tests {
    use sluicegate_wire::{Check, Cost, Reason};
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn cache(max_entries: usize) -> DenyCache {
        DenyCache::new(DenyCacheConfig { max_entries, max_life: Span::from_ms(5_000).unwrap() })
    }

    fn question(key: &str, cost: u64) -> CheckRequest {
        let check =
            Check { policy: "p".into(), key: Subject::text(key), cost: Cost::new(cost).unwrap(), shadow: false };
        CheckRequest { checks: vec![check] }
    }

    fn denied(wait_ms: u64, deny_cache_ms: Option<u64>) -> CheckAnswer {
        let result = LimitResult {
            check: 0,
            policy: "p".into(),
            limit: "l".into(),
            allowed: false,
            reason: Reason::OverLimit,
            capacity: 10,
            window_ms: 10_000,
            remaining: 0,
            retry_after_ms: Some(wait_ms),
            next_ms: 1_000,
            full_ms: 10_000,
            shadow: false,
        };
        let shadow = LimitResult { shadow: true, ..result.clone() };
        CheckAnswer { allowed: false, results: vec![result, shadow], charge: None, deny_cache_ms }
    }

    #[test]
    fn a_denial_is_given_again_with_its_waits_counted_down() {
        let mut cache = cache(10);
        cache.put(&question("q", 2), &denied(3_000, Some(3_000)), 100_000);
        let later = cache.get(&question("q", 2), 101_200).unwrap();
        assert_eq!(later.results.len(), 1, "shadow limits are not kept");
        let result = &later.results[0];
        assert_eq!((result.retry_after_ms, result.next_ms, result.full_ms), (Some(1_800), 1, 8_800));
        for other in [question("another", 2), question("q", 1)] {
            assert_eq!(cache.get(&other, 101_200), None);
        }
        assert!(cache.get(&question("q", 2), 102_999).is_some());
        assert_eq!(cache.get(&question("q", 2), 103_000), None);
        assert_eq!(cache.entries.len(), 0);
    }

    #[test]
    fn it_lives_as_long_as_the_answer_and_the_configuration_allow() {
        let mut cache = cache(10);
        cache.put(&question("long", 2), &denied(60_000, Some(60_000)), 0);
        assert!(cache.get(&question("long", 2), 4_999).is_some());
        assert_eq!(cache.get(&question("long", 2), 5_000), None);
        for answer in [denied(9, Some(0)), denied(9, None)] {
            cache.put(&question("a", 2), &answer, 0);
            assert_eq!(cache.get(&question("a", 2), 0), None);
        }
        let mut off = DenyCache::new(DenyCacheConfig { max_entries: 0, ..DenyCacheConfig::default() });
        off.put(&question("q", 2), &denied(9, Some(9)), 0);
        assert_eq!(off.get(&question("q", 2), 0), None);
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut cache = cache(2);
        for key in ["a", "b", "a", "c"] {
            cache.put(&question(key, 2), &denied(1_000, Some(1_000)), 0);
            assert_eq!(cache.entries.len(), cache.ages.len());
        }
        assert!(cache.get(&question("a", 2), 1).is_some() && cache.get(&question("c", 2), 1).is_some());
        assert_eq!(cache.get(&question("b", 2), 1), None);
    }

    #[test]
    fn a_clock_set_back_ends_it() {
        let mut cache = cache(2);
        cache.put(&question("q", 2), &denied(1_000, Some(1_000)), 1_000);
        assert_eq!(cache.get(&question("q", 2), 999), None);
    }
}
