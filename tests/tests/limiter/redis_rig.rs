//! A real Redis, asked from a test without async.

use std::{cell::RefCell, collections::BTreeMap};

use redis::{
    Cmd, FromRedisValue, Pipeline, RedisError, RedisFuture, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};
use sluicegate_lua::Call;
use sluicegate_tests::Redis;
use tokio::runtime::{Builder, Runtime};

use crate::store::Entry;

/// A Redis of its own, and a connection to it.
pub(crate) struct RedisRig {
    pub(crate) runtime: Runtime,
    connection: RefCell<IntegersOnly>,
    pub(crate) redis: Redis,
}

impl RedisRig {
    pub(crate) fn new() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let redis = runtime.block_on(Redis::start()).unwrap();
        let connection = RefCell::new(IntegersOnly(runtime.block_on(redis.connection()).unwrap()));
        Self { runtime, connection, redis }
    }

    /// Runs a call as the service does.
    pub(crate) fn run(&self, call: &Call) -> Result<Vec<i64>, RedisError> {
        self.runtime.block_on(sluicegate_lua::run(call, &mut *self.connection.borrow_mut()))
    }

    /// One plain command.
    pub(crate) fn command<T: FromRedisValue>(&self, words: &[&str]) -> T {
        let command = command(words);
        self.runtime.block_on(command.query_async(&mut self.connection.borrow_mut().0)).unwrap()
    }

    pub(crate) fn now_ms(&self) -> u64 {
        let (seconds, micros): (u64, u64) = self.command(&["TIME"]);
        seconds * 1_000 + micros / 1_000
    }

    pub(crate) fn pass(&self, ms: u64) {
        let until_ms = self.now_ms() + ms;
        // The clock is asked each time, so there is no moment to miss.
        while self.now_ms() < until_ms {
            std::thread::yield_now();
        }
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for key in self.command::<Vec<String>>(&["KEYS", "*"]) {
            let ttl_ms: i64 = self.command(&["PTTL", &key]);
            // None and −2: it has expired since.
            if let (Some(value), -1..) = (self.command(&["GET", &key]), ttl_ms) {
                entries.push(Entry { key, value, ttl_ms: u64::try_from(ttl_ms).ok() });
            }
        }
        entries
    }

    /// The commands that ran in `f`, the calls of scripts themselves and what this rig asks apart.
    pub(crate) fn commands(&self, f: impl FnOnce()) -> u64 {
        self.command::<()>(&["CONFIG", "RESETSTAT"]);
        f();
        let stats: String = self.command(&["INFO", "commandstats"]);
        let counts = stats.lines().filter_map(|line| {
            let (name, fields) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name, fields.split_once(',')?.0.parse().unwrap()))
        });
        let counts: BTreeMap<&str, u64> = counts.collect();
        // Ours and the test's own; Redis 7 tells subcommands apart, Redis 6 doesn't.
        let of_scripts = |name: &str| {
            let command = name.split('|').next().unwrap_or(name);
            !matches!(command, "evalsha" | "eval" | "script" | "config" | "info")
        };
        counts.iter().filter(|(name, _)| of_scripts(name)).map(|(_, count)| count).sum()
    }
}

/// A command of plain words.
pub(crate) fn command(words: &[&str]) -> Cmd {
    let mut command = Cmd::new();
    words.iter().for_each(|word| {
        command.arg(word);
    });
    command
}

/// A connection that refuses to hear anything but integers from a script: the client would read numbers out of text.
struct IntegersOnly(MultiplexedConnection);

impl ConnectionLike for IntegersOnly {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async {
            let reply = self.0.req_packed_command(command).await?;
            if command.args_iter().next() == Some(redis::Arg::Simple(b"EVALSHA")) {
                let integers = |items: &[Value]| items.iter().all(|item| matches!(item, Value::Int(_)));
                let fine = match &reply {
                    Value::Array(items) => integers(items),
                    other => matches!(other, Value::ServerError(_)),
                };
                assert!(fine, "not a list of integers: {reply:?}");
            }
            Ok(reply)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.0.get_db()
    }
}
