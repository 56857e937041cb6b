//! The stores that a case runs on: the one in this process under a clock that tests move, and a real Redis.

use sluicegate_lua::Call;

use crate::{redis_rig::RedisRig, rig::Rig};

/// A store of the test's own.
pub(crate) enum Store {
    Embedded(Rig),
    Redis(Box<RedisRig>),
}

/// A key, what it holds, and the ms it still lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) ttl_ms: Option<u64>,
}

impl Store {
    pub(crate) fn embedded() -> Self {
        Self::Embedded(Rig::new())
    }

    pub(crate) fn redis() -> Self {
        Self::Redis(Box::new(RedisRig::new()))
    }

    /// Runs a call; the error reply as text.
    pub(crate) fn run(&self, call: &Call) -> Result<Vec<i64>, String> {
        match self {
            Self::Embedded(rig) => rig.memory.run(call).map_err(|error| error.to_string()),
            Self::Redis(rig) => rig.run(call).map_err(|error| error.to_string()),
        }
    }

    /// The store's time, in ms since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        match self {
            Self::Embedded(rig) => rig.now_ms(),
            Self::Redis(rig) => rig.now_ms(),
        }
    }

    /// Returns when at least `ms` more have passed on the store's clock; just so many on the embedded one.
    pub(crate) fn pass(&self, ms: u64) {
        match self {
            Self::Embedded(rig) => rig.pause(ms),
            Self::Redis(rig) => rig.pass(ms),
        }
    }

    /// Everything the store holds, by key.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = match self {
            Self::Embedded(rig) => {
                let entries = rig.memory.entries().into_iter();
                entries.map(|(key, value, ttl_ms)| Entry { key, value, ttl_ms: Some(ttl_ms) }).collect()
            }
            Self::Redis(rig) => rig.entries(),
        };
        entries.sort();
        entries
    }

    /// The commands that scripts called in `f`.
    pub(crate) fn commands(&self, f: impl FnOnce()) -> u64 {
        match self {
            Self::Embedded(rig) => {
                let before = rig.memory.commands();
                f();
                rig.memory.commands() - before
            }
            Self::Redis(rig) => rig.commands(f),
        }
    }
}
