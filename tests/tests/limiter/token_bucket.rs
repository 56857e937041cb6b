//! `lua/token_bucket.lua` through its public contract: one key; capacity, refill per second, now in ms, cost; and back
//! come allowed, remaining and seconds to wait.

mod arguments;
mod arithmetic;
mod clocks;

use sluicegate_lua::{Call, MAX_FILL_MS, TOKEN_BUCKET};

use crate::{case::Case, rig::START_MS};

/// Any key will do.
const KEY: &str = "rl:{user-42}";

/// Calls it with these words: the error reply as text.
fn call(case: &Case, keys: &[&str], args: &[&str]) -> Result<Vec<i64>, String> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    case.store.run(&Call { script: &TOKEN_BUCKET, keys: words(keys), args: words(args) })
}

/// One take: allowed, remaining, seconds to wait.
fn take(case: &Case, capacity: &str, rate: &str, now_ms: u64, cost: u64) -> [i64; 3] {
    let reply = call(case, &[KEY], &[capacity, rate, &now_ms.to_string(), &cost.to_string()]).unwrap();
    reply.try_into().expect("three integers")
}

/// Runs a case on one of the stores, and afterwards checks that what it left expires and is in its one key.
fn run(store: crate::store::Store, body: impl FnOnce(&Case)) {
    crate::case::run(store, |case| {
        body(case);
        for entry in case.store.entries() {
            assert_eq!(entry.key, KEY);
            assert!(entry.ttl_ms.expect("a TTL") <= MAX_FILL_MS, "{entry:?}");
        }
        case.delete(KEY);
    });
}

/// Runs each case of a module on both stores.
macro_rules! on_both_stores {
    ($($case:ident),+ $(,)?) => {
        mod embedded {
            $(#[test] fn $case() { super::super::run(crate::store::Store::embedded(), super::$case); })+
        }
        mod real_redis {
            $(#[test] fn $case() { super::super::run(crate::store::Store::redis(), super::$case); })+
        }
    };
}
use on_both_stores;
