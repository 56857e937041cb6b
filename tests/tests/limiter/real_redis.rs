//! What only a real Redis can show: many connections, a lost script or reply, other types, access rules, a cluster.

use std::sync::Arc;

use redis::{Cmd, ErrorKind, Pipeline, RedisError, RedisFuture, Value, aio::ConnectionLike};
use sluicegate_lua::{Answer, Ban, Override, Take};
use sluicegate_tests::{Port, Process, Redis};

use crate::{
    case::{Case, run, unit},
    policies::{HOUR_MS, greedy, limits, one, policy},
    redis_rig::{RedisRig, command},
    store::Store,
};

/// A case with its Redis.
fn check(case: impl FnOnce(&Case, &RedisRig)) {
    run(Store::redis(), |bench| {
        let Store::Redis(rig) = &bench.store else { unreachable!("it was made above") };
        case(bench, rig);
    });
}

/// throttled 41: compare-and-swap retries ran out.
#[test]
fn two_hundred_parallel_takes_admit_exactly_the_capacity() {
    check(|case, rig| {
        let policy = one(greedy(57, 1, HOUR_MS));
        let take = Arc::new(Take { takes: 1, units: vec![unit(&[(&policy, &case.keys, 1)], true)] });
        let call = Arc::new(take.call(0));
        let granted: u64 = rig.runtime.block_on(async {
            let mut callers = Vec::new();
            for _ in 0..200 {
                let mut connection = rig.redis.connection().await.unwrap();
                let (take, call) = (Arc::clone(&take), Arc::clone(&call));
                callers.push(tokio::spawn(async move {
                    let reply = sluicegate_lua::run(&call, &mut connection).await.unwrap();
                    let Answer::Done(taken) = take.read(&reply).unwrap() else { panic!("{reply:?}") };
                    taken.units[0].granted
                }));
            }
            let mut granted = 0;
            for caller in callers {
                granted += caller.await.unwrap();
            }
            granted
        });
        assert_eq!(granted, 57);
        assert_eq!(case.left(&policy), [0]);
    });
}

/// upstash 122, PyrateLimiter 182: the script was gone, and decisions failed.
#[test]
fn a_flushed_script_fails_nothing_and_charges_once() {
    check(|case, rig| {
        let policy = Arc::new(limits(&[("burst", greedy(9, 1, HOUR_MS))]).with_overrides());
        let own = [("burst".parse().unwrap(), greedy(7, 1, HOUR_MS))];
        let flush = || rig.command::<()>(&["SCRIPT", "FLUSH"]);
        flush();
        case.store.run(&Override::new(&policy, &own, None).unwrap().call(&case.keys)).unwrap();
        for left in (0..7).rev() {
            flush();
            assert_eq!(case.take(&policy, 1).left(), [left]);
        }
        flush();
        assert_eq!(case.give(&policy, 3, &[]), [3]);
        assert_eq!(case.left(&policy), [3]);
        flush();
        assert_eq!(case.reset(&policy), 1);
        assert_eq!(case.left(&policy), [7]);
    });
}

/// A connection that loses every reply of a script that ran.
struct LosesReplies<C>(C);

impl<C: ConnectionLike + Send> ConnectionLike for LosesReplies<C> {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async {
            self.0.req_packed_command(command).await?;
            Err(RedisError::from((ErrorKind::Io, "the reply was lost")))
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

/// rate-limit-redis 251: the call was made again after any error.
#[test]
fn a_lost_reply_is_an_error_and_charges_once() {
    check(|case, rig| {
        let policy = one(greedy(9, 1, HOUR_MS));
        case.peek(&policy);
        let take = Take { takes: 1, units: vec![unit(&[(&policy, &case.keys, 2)], true)] };
        let lost = rig.runtime.block_on(async {
            let mut connection = LosesReplies(rig.redis.connection().await.unwrap());
            sluicegate_lua::run(&take.call(0), &mut connection).await
        });
        assert_eq!(lost.unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(case.left(&policy), [7]);
    });
}

#[test]
fn a_key_of_another_type_is_an_error() {
    check(|case, rig| {
        let policy = limits(&[("a", greedy(9, 1, HOUR_MS)), ("b", greedy(9, 1, HOUR_MS))]);
        let policy = Arc::new(policy.with_ban(Ban::new(2, HOUR_MS, HOUR_MS).unwrap()).with_overrides());
        let take = Take { takes: 1, units: vec![unit(&[(&policy, &case.keys, 1)], true)] };
        for key in [case.limit_key("b"), case.keys.ban(), case.keys.overrides()] {
            for fill in [["HSET", &key, "tokens", "5"].as_slice(), &["LPUSH", &key, "5"], &["SADD", &key, "5"]] {
                rig.command::<()>(fill);
                rig.command::<()>(&["PEXPIRE", &key, "60000"]);
                let error = rig.run(&take.call(0)).unwrap_err();
                assert!(error.to_string().contains("WRONGTYPE"), "{error}");
                assert_eq!(rig.command::<Vec<String>>(&["KEYS", "*"]), [key.as_str()]);
                rig.command::<()>(&["DEL", &key]);
            }
        }
    });
}

/// A store that is full or read-only refuses; it must not look like a pass.
#[test]
fn a_store_that_takes_no_writes_is_an_error() {
    check(|case, rig| {
        let policy = one(greedy(9, 1, HOUR_MS));
        let take = Take { takes: 1, units: vec![unit(&[(&policy, &case.keys, 1)], true)] };
        rig.command::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        assert!(rig.run(&take.call(0)).is_err());
        rig.command::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        rig.command::<()>(&["REPLICAOF", "127.0.0.1", &rig.redis.port().to_string()]);
        assert!(rig.run(&take.call(0)).is_err());
        rig.command::<()>(&["REPLICAOF", "NO", "ONE"]);
        assert_eq!(case.take(&policy, 1).left(), [8]);
    });
}

/// wurk PR 92: a key was built inside Lua.
#[test]
fn scripts_touch_only_the_keys_they_are_given() {
    check(|case, rig| {
        let policy = limits(&[("a", greedy(9, 1, HOUR_MS)), ("b", greedy(9, 1, HOUR_MS))]);
        let policy = Arc::new(policy.with_ban(Ban::new(1, HOUR_MS, HOUR_MS).unwrap()).with_overrides());
        let own = [("a".parse().unwrap(), greedy(7, 1, HOUR_MS))];
        let given = [case.limit_key("a"), case.limit_key("b"), case.keys.ban(), case.keys.overrides()];
        let patterns: Vec<_> = given.iter().map(|key| format!("~{key}")).collect();
        let mut rule = vec!["ACL", "SETUSER", "default", "resetkeys"];
        rule.extend(patterns.iter().map(String::as_str));
        rig.command::<()>(&rule);
        let denied = rig.runtime.block_on(async {
            let mut connection = rig.redis.connection().await.unwrap();
            command(&["GET", "sg:{p:s}:c"]).exec_async(&mut connection).await
        });
        assert_eq!(denied.unwrap_err().code(), Some("NOPERM"));

        case.store.run(&Override::new(&policy, &own, None).unwrap().call(&case.keys)).unwrap();
        let take = Take { takes: 9, units: vec![unit(&[(&policy, &case.keys, 1)], true)] };
        rig.run(&take.call(0)).unwrap();
        case.give(&policy, 2, &[]);
        assert_eq!(case.reset(&policy), 3);
        rig.command::<()>(&["ACL", "SETUSER", "default", "allkeys"]);
    });
}

/// hash-tag injection: on a cluster a limit's key was in another slot than its sibling.
#[tokio::test]
async fn a_cluster_finds_all_keys_of_a_subject_in_one_slot() {
    let (port, bus, directory) = (Port::lease().unwrap(), Port::lease().unwrap(), tempfile::tempdir().unwrap());
    let mut server = std::process::Command::new("redis-server");
    server.args(["--port", &port.number().to_string(), "--cluster-port", &bus.number().to_string()]);
    server.args(["--bind", "127.0.0.1", "--save", "", "--cluster-enabled", "yes", "--dir"]).arg(directory.path());
    let mut process = Process::spawn("redis-server", &mut server, &directory.path().join("redis.log")).unwrap();
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", port.number())).unwrap();
    process.ready(async || client.get_multiplexed_async_connection().await.is_ok()).await.unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).exec_async(&mut connection).await.unwrap();
    let up = async || {
        let info: String = command(&["CLUSTER", "INFO"]).query_async(&mut connection.clone()).await.ok()?;
        info.contains("cluster_state:ok").then_some(())
    };
    sluicegate_tests::until("the cluster", std::time::Duration::from_secs(20), up).await.unwrap();

    let limits = limits(&[("a", greedy(1, 1, HOUR_MS)), ("b", greedy(1, 1, HOUR_MS))]);
    let policy = Arc::new(limits.with_ban(Ban::new(1, HOUR_MS, HOUR_MS).unwrap()).with_overrides());
    for subject in ["", "}x", "{", "a}b", "{u1}", "u1", "{}", "}{"] {
        let subject = sluicegate_wire::Subject::text(subject).encode(None);
        let keys = sluicegate_lua::KeyPrefix::default().keys(policy.name(), &subject);
        let take = Take { takes: 1, units: vec![unit(&[(&policy, &keys, 1)], true)] };
        let mut granted = Vec::new();
        for _ in 0..2 {
            let reply = sluicegate_lua::run(&take.call(0), &mut connection).await.unwrap();
            let Answer::Done(taken) = take.read(&reply).unwrap() else { panic!("{reply:?}") };
            granted.push(taken.units[0].granted);
        }
        assert_eq!(granted, [1, 0], "{keys:?}");
        for key in [keys.ban(), keys.limit(&"a".parse().unwrap())] {
            let slot: u16 = command(&["CLUSTER", "KEYSLOT", &key]).query_async(&mut connection).await.unwrap();
            assert_eq!(slot, crate::slot::slot(&key), "{key}");
        }
    }
}

/// A restart loses the script and the keys; the next take finds the bucket full and is no error.
#[test]
fn a_restart_in_mid_traffic_is_survived() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut redis = Redis::start().await.unwrap();
        let policy = policy(&[("burst", greedy(2, 1, HOUR_MS))]);
        let keys =
            sluicegate_lua::KeyPrefix::default().keys(policy.name(), &sluicegate_wire::Subject::text("s").encode(None));
        let take = Take { takes: 3, units: vec![unit(&[(&policy, &keys, 1)], true)] };
        for _ in 0..2 {
            let mut connection = redis.connection().await.unwrap();
            let reply = sluicegate_lua::run(&take.call(0), &mut connection).await.unwrap();
            assert_eq!(reply[1], 2);
            redis.restart().await.unwrap();
        }
    });
}
