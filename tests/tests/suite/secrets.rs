//! One secret, one key: from the filter, from the API and on the command line, and never in clear.

use std::process::Command;

use redis::AsyncCommands as _;
use reqwest::Method;
use serde_json::json;
use sluicegate_tests::{Client, Stack, Tool};

const SECRET: &str = "sk-live-4242";
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
key_pepper: a pepper of the test
policies:
  api:
    limits: [{ name: day, capacity: 10, refill: 10, per: 1d, interval: true }]
";

#[tokio::test]
async fn the_filter_the_api_and_the_command_line_arrive_at_the_same_key() {
    let plugin = json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "5s" },
        "key_pepper": "a pepper of the test",
        "rules": [{
            "name": "all",
            "limits": [{ "policy": "api", "key": [{ "header": "x-api-key", "secret": true }, { "header": "x-tenant" }] }],
            "on_failure": "closed",
        }],
    });
    let stack = Stack::start(SERVICE, &plugin).await.unwrap();
    let tenant = "t/{1}";

    let through_envoy = stack.client().unwrap();
    let headers = [("x-api-key", SECRET), ("x-tenant", tenant)];
    assert_eq!(through_envoy.send(Method::GET, "/", &headers).await.unwrap().status, 200);

    let api = Client::new(stack.service.port()).unwrap();
    let key = json!([{ "secret": SECRET }, tenant]);
    let answer = api.check(&json!({ "checks": [{ "policy": "api", "key": key }] })).await.unwrap();
    assert_eq!(answer.json()["results"][0]["remaining"], 8, "not the bucket that the filter used: {answer:?}");

    let mut command = Command::new(Tool::Service.path().unwrap());
    command.args(["key", "api", "--json", &key.to_string(), "--config"]).arg(stack.service.config());
    let printed = command.output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let mut connection = stack.redis.connection().await.unwrap();
    let keys: Vec<String> = connection.keys("*").await.unwrap();
    assert_eq!(keys, [printed.lines().next().unwrap()], "{printed}");

    for (place, text) in [
        ("Redis", keys.join("\n")),
        ("the log", stack.service.log().unwrap()),
        ("the answer", answer.json().to_string()),
    ] {
        assert!(!text.contains(SECRET) && !text.contains("pepper of"), "{place} shows it: {text}");
    }
}
