//! Secrets that sing when they are shown: none may be in a log, a metric, an answer, a message or a key.

use std::{
    fs,
    process::{Command, Output},
    time::Duration,
};

use anyhow::Result;
use redis::AsyncCommands as _;
use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Client, Port, Process, Redis, Signal, Tool, until};

const TOKEN: &str = "canary-data-token";
const ADMIN: &str = "canary-admin-token";
const METRICS: &str = "canary-metrics-token";
const PASSWORD: &str = "canary-store-password";
const PEPPER: &str = "canary-pepper";
const KEY: &str = "canary-api-key";

/// All of them begin alike.
const SONG: &str = "canary-";

/// Text and where it is from.
#[derive(Default)]
struct Seen(Vec<(String, String)>);

impl Seen {
    fn add(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.0.push((place.into(), text.into()));
    }

    fn output(&mut self, place: &str, output: &Output) {
        self.add(place, String::from_utf8_lossy(&output.stdout));
        self.add(place, String::from_utf8_lossy(&output.stderr));
    }

    fn check(&self) {
        for (place, text) in &self.0 {
            let at = text.find(SONG);
            assert!(at.is_none(), "{place} shows a secret: {}", &text[at.unwrap_or(0).saturating_sub(200)..]);
        }
    }
}

fn configuration(data: &Port, admin: &Port, redis: &Redis) -> String {
    format!(
        "listen: 127.0.0.1:{}
token: {TOKEN}
admin: {{ listen: '127.0.0.1:{}', token: '${{ADMIN}}', metrics_token: {METRICS} }}
store: {{ url: '{}', username: sluice, password: '{PASSWORD}', timeout: 2s }}
key_pepper: {PEPPER}
drain: 0s
policies:
  api:
    limits: [{{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }}]
    ban: {{ after: 2, within: 10m, for: 1h }}
",
        data.number(),
        admin.number(),
        redis.url(),
    )
}

/// Every way to ask, right and wrong, over both versions of HTTP.
async fn ask_everything(seen: &mut Seen, data: u16, admin: u16) -> Result<()> {
    let secret = json!([{ "secret": KEY }, "tenant"]);
    let check = |key: &Value| json!({ "checks": [{ "policy": "api", "key": key }] }).to_string();
    let bodies = [
        check(&secret),
        check(&json!({ "secret": KEY })),
        check(&json!([{ "secrets": KEY }])),
        check(&json!([{ "secret": [KEY] }])),
        check(&json!([{ "secret": KEY, "b64": "eA==" }])),
        check(&json!([[{ "secret": KEY }]])),
        check(&secret).replace("api", "none"),
        check(&secret).replace("]}]", "]"),
    ];
    for client in [Client::new(data)?, Client::new_http2(data)?] {
        for token in [TOKEN, METRICS] {
            let authorization = format!("Bearer {token}");
            for path in ["/v1/check", "/v1/refund", "/v1/lease", "/nowhere"] {
                for body in &bodies {
                    let headers = [("authorization", authorization.as_str()), ("x-sluicegate-timeout-ms", "2000")];
                    let answer = client.send_with_body(Method::POST, path, &headers, body).await?;
                    seen.add(format!("{path} {body}"), format!("{answer:?} {}", String::from_utf8_lossy(&answer.body)));
                }
            }
        }
    }
    let client = Client::new(admin)?;
    for token in [ADMIN, METRICS, TOKEN] {
        for path in ["/metrics", "/healthz", "/readyz", "/nowhere"] {
            let headers = [("authorization", format!("Bearer {token}"))];
            let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
            let answer = client.send(Method::GET, path, &headers).await?;
            seen.add(path, format!("{answer:?} {}", String::from_utf8_lossy(&answer.body)));
        }
    }
    Ok(())
}

#[tokio::test]
async fn no_secret_is_shown_anywhere() {
    let (redis, data, admin) = (Redis::start().await.unwrap(), Port::lease().unwrap(), Port::lease().unwrap());
    let mut connection = redis.connection().await.unwrap();
    let user = ["SETUSER", "sluice", "on", &format!(">{PASSWORD}"), "~*", "+@all"].map(str::to_owned);
    redis::cmd("ACL").arg(&user).query_async::<()>(&mut connection).await.unwrap();

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sluicegate.yaml");
    let good = configuration(&data, &admin, &redis);
    fs::write(&file, &good).unwrap();
    let service = || {
        let mut command = Command::new(Tool::Service.path().unwrap());
        command.env("ADMIN", ADMIN).env("SLUICEGATE_LOG", "trace").current_dir(directory.path());
        command
    };
    let mut seen = Seen::default();
    let log = directory.path().join("sluicegate.log");
    let mut process = Process::spawn("sluicegate", service().args(["serve"]), &log).unwrap();
    let health = Client::new(data.number()).unwrap();
    let status = async || health.get("/readyz").await.map_or(0, |answer| answer.status);
    process.ready(async || status().await == 200).await.unwrap();
    ask_everything(&mut seen, data.number(), admin.number()).await.unwrap();

    // Denied until banned, so that a key of each kind is there.
    for _ in 0..5 {
        let body = json!({ "checks": [{ "policy": "api", "key": [{ "secret": KEY }, "tenant"] }] }).to_string();
        let headers = [("authorization", &*format!("Bearer {TOKEN}"))];
        let answer = health.send_with_body(Method::POST, "/v1/check", &headers, &body).await.unwrap();
        assert!([200, 429].contains(&answer.status), "{answer:?}");
    }
    let keys: Vec<String> = connection.keys("*").await.unwrap();
    assert_eq!(keys.iter().filter(|key| key.contains("tenant")).count(), 2, "{keys:?}");
    for key in keys {
        let value: Vec<u8> = connection.get(&key).await.unwrap();
        seen.add("Redis", format!("{key} {}", String::from_utf8_lossy(&value)));
    }

    // Refused by the store, and without one.
    redis::cmd("ACL")
        .arg(&["SETUSER", "sluice", "resetpass", ">other"])
        .query_async::<()>(&mut connection)
        .await
        .unwrap();
    redis::cmd("CLIENT").arg(&["KILL", "USER", "sluice"]).query_async::<()>(&mut connection).await.unwrap();
    until("the service to be unready", Duration::from_secs(20), async || (status().await == 503).then_some(()))
        .await
        .unwrap();
    ask_everything(&mut seen, data.number(), admin.number()).await.unwrap();
    process.signal(Signal::TERM).unwrap();
    assert!(process.exited(Duration::from_secs(20)).await.unwrap().success());
    let logged = process.log();
    assert!(logged.contains("TRACE") && logged.lines().count() > 50, "{logged}");
    seen.add("the log", logged);

    // Faults of configuration, each next to secrets, and what the command line prints.
    let faulty = [
        good.replace("drain: 0s", "drain: x"),
        good.replace("  api:", "  - api:"),
        good.replace(&format!("token: {TOKEN}"), &format!("token: {TOKEN} and more")),
        good.replace(&format!("token: {TOKEN}"), &format!("token: [{TOKEN}]")),
        good.replace(&format!("token: {TOKEN}"), &format!("token_file: {TOKEN}")),
        good.replace("username: sluice, ", "username: '', "),
        good.replace("redis://", &format!("redis://u:{PASSWORD}@")),
    ];
    for text in &faulty {
        fs::write(&file, text).unwrap();
        let output = service().args(["check-config", "sluicegate.yaml"]).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{text}");
        seen.output("check-config", &output);
    }
    fs::write(&file, &good).unwrap();
    for arguments in [
        &["check-config", "sluicegate.yaml"][..],
        &["--help"],
        &["serve", "--help"],
        &["key", "api", "--json", &json!([{ "secret": KEY }]).to_string(), "--config", "sluicegate.yaml"],
        &["key", "none", "--json", &json!([{ "secret": KEY }]).to_string(), "--config", "sluicegate.yaml"],
    ] {
        seen.output(&arguments.join(" "), &service().args(arguments).output().unwrap());
    }
    seen.check();
}
