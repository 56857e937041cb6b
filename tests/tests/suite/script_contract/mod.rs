//! The published script, called from other languages as its header says.

use std::process::Command;

use redis::AsyncCommands as _;
use serde_json::{Value, json};
use sluicegate_tests::{Redis, Tool, repository};

fn redis_py() -> Command {
    let mut command = Command::new(Tool::Python.path().unwrap());
    command.arg(repository("tests/tests/suite/script_contract/redis_py.py"));
    command
}

fn ioredis() -> Command {
    let mut command = Command::new("node");
    command.env("NODE_PATH", Tool::NodeModules.path().unwrap());
    command.arg(repository("tests/tests/suite/script_contract/ioredis.cjs"));
    command
}

/// Makes the calls in order, and returns a reply for each.
fn replies(mut language: Command, redis: &Redis, calls: &[&Value]) -> Vec<Value> {
    language.arg(redis.port().to_string()).arg(repository("lua/token_bucket.lua")).arg(json!(calls).to_string());
    let output = language.output().unwrap_or_else(|error| panic!("{language:?}: {error}: run `cargo xtask test`"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Key, capacity, refill per second, now in ms, cost: and what comes back.
fn cases() -> Vec<(Value, Value)> {
    const NOW: u64 = 1_800_000_000_000;
    vec![
        // Starts full, takes, and names the wait for what is missing.
        (json!(["rl:{user-42}", 10, 2, NOW, 4]), json!([1, 6, 0])),
        (json!(["rl:{user-42}", 10, 2, NOW, 4]), json!([1, 2, 0])),
        (json!(["rl:{user-42}", 10, 2, NOW, 4]), json!([0, 2, 1])),
        (json!(["rl:{user-42}", 10, 2, NOW, 5]), json!([0, 2, 2])),
        // Looking takes nothing; more than the capacity never succeeds.
        (json!(["rl:{user-42}", 10, 2, NOW, 0]), json!([1, 2, 0])),
        (json!(["rl:{user-42}", 10, 2, NOW, 11]), json!([0, 2, -1])),
        // One second is two tokens; a caller's clock that goes back takes none away and adds none.
        (json!(["rl:{user-42}", 10, 2, NOW + 1000, 4]), json!([1, 0, 0])),
        (json!(["rl:{user-42}", 10, 2, NOW - 60_000, 0]), json!([1, 0, 0])),
        (json!(["rl:{user-42}", 10, 2, NOW + 1500, 1]), json!([1, 0, 0])),
        // A fractional rate, written as a number or as text.
        (json!(["rl:{slow}", 1, 0.5, NOW, 1]), json!([1, 0, 0])),
        (json!(["rl:{slow}", 1, "0.5", NOW, 1]), json!([0, 0, 2])),
        (json!(["rl:{slow}", 1, 0.5, NOW + 1999, 1]), json!([0, 0, 1])),
        (json!(["rl:{slow}", 1, 0.5, NOW + 2000, 1]), json!([1, 0, 0])),
        // Without refill an empty bucket stays empty.
        (json!(["rl:{once}", 1, 0, NOW, 1]), json!([1, 0, 0])),
        (json!(["rl:{once}", 1, 0, NOW + 3_600_000, 1]), json!([0, 0, -1])),
        // The server's own clock.
        (json!(["rl:{server}", 3, 0.001, 0, 2]), json!([1, 1, 0])),
        (json!(["rl:{server}", 3, 0.001, 0, 2]), json!([0, 1, 1000])),
        // What no caller should send.
        (json!(["rl:{bad}", "nan", 1, 0, 1]), json!("error")),
        (json!(["rl:{bad}", "inf", 1, 0, 1]), json!("error")),
        (json!(["rl:{bad}", "0x10", 1, 0, 1]), json!("error")),
        (json!(["rl:{bad}", 0, 1, 0, 1]), json!("error")),
        (json!(["rl:{bad}", 10, -1, 0, 1]), json!("error")),
        (json!(["rl:{bad}", 10, "nan", 0, 1]), json!("error")),
        (json!(["rl:{bad}", 10, 1, "x", 1]), json!("error")),
        (json!(["rl:{bad}", 10, 1, 0, -1]), json!("error")),
        (json!(["rl:{bad}", 10, 1, 0, 1.5]), json!("error")),
        (json!(["rl:{bad}", 10, 1, 0, ""]), json!("error")),
        (json!(["rl:{bad}", 10, 1, 0]), json!("error")),
    ]
}

async fn check(language: fn() -> Command) {
    let redis = Redis::start().await.unwrap();
    let cases = cases();
    let calls: Vec<_> = cases.iter().map(|(call, _)| call).collect();
    let replies = replies(language(), &redis, &calls);
    assert_eq!(replies.len(), cases.len());
    for ((call, expected), reply) in cases.iter().zip(&replies) {
        assert_eq!(reply, expected, "{call}");
    }

    let mut connection = redis.connection().await.unwrap();
    assert!(!connection.exists::<_, bool>("rl:{bad}").await.unwrap(), "a refused call wrote something");
    let ttl_days = connection.ttl::<_, i64>("rl:{once}").await.unwrap() / 86_400;
    assert!((365..=366).contains(&ttl_days), "{ttl_days} days");
    assert!(redis.assert_all_keys_expire() >= 2);
}

#[tokio::test]
async fn redis_py_unpacks_three_values() {
    check(redis_py).await;
}

#[tokio::test]
async fn ioredis_unpacks_three_values() {
    check(ioredis).await;
}
