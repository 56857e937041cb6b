//! What the dashboard is told, and who may not ask with an operator's browser.

use std::time::{Duration, Instant};

use reqwest::{Method, Response};
use serde_json::{Value, json};
use sluicegate_tests::{Client, Redis, Service, Signal, until};

const SERVICE: &str = "
store: { url: 'memory://', timeout: 5s }
drain: 50ms
policies:
  api:
    limits: [{ name: day, capacity: 20, refill: 20, per: 1d, interval: true }]
  idle:
    limits: [{ name: day, capacity: 1, refill: 1, per: 1d }]
";

async fn start() -> (Service, Client, Client) {
    let service = Service::start(SERVICE, "memory://").await.unwrap();
    let (data, admin) = (Client::new(service.port()).unwrap(), Client::new(service.admin_port()).unwrap());
    (service, data, admin)
}

/// A stream of events, each with its name.
struct Events {
    response: Response,
    rest: String,
}

impl Events {
    async fn open(service: &Service) -> Self {
        let response = Self::ask(service).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, rest: String::new() }
    }

    async fn ask(service: &Service) -> Response {
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        client.get(format!("http://127.0.0.1:{}/v1/events", service.admin_port())).send().await.unwrap()
    }

    /// None at the end of the stream.
    async fn next(&mut self) -> Option<(String, Value)> {
        loop {
            if let Some((event, rest)) = self.rest.split_once("\n\n") {
                let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
                let event = (name.to_owned(), serde_json::from_str(data).unwrap());
                self.rest = rest.to_owned();
                return Some(event);
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.rest.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

fn sum(list: &Value) -> u64 {
    list.as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
}

#[tokio::test]
async fn the_overview_counts_what_was_sent() {
    let (_service, data, admin) = start().await;
    for _ in 0..25 {
        data.take("api", "k", 1).await.unwrap();
    }
    data.take("api", "k", 21).await.unwrap();
    let overview = until("all are counted", Duration::from_secs(10), async || {
        let overview = admin.get("/v1/overview").await.unwrap().json();
        (sum(&overview["seconds"]["never"]) == 1).then_some(overview)
    })
    .await
    .unwrap();
    let checks = json!({ "allowed": 20, "over_limit": 5, "never": 1, "banned": 0, "failed": 0 });
    let none = json!({ "allowed": 0, "over_limit": 0, "never": 0, "banned": 0, "failed": 0 });
    let state = &overview["state"];
    assert_eq!(state["policies"][0]["checks"], checks);
    assert!(state["policies"][0]["p99_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(state["policies"][1], json!({ "policy": "idle", "checks": none, "p99_ms": null }));
    assert_eq!((&state["ready"], &state["reason"]), (&json!(true), &Value::Null));
    for verdict in ["allowed", "over_limit", "never", "banned", "failed"] {
        assert_eq!(sum(&overview["seconds"][verdict]), checks[verdict].as_u64().unwrap(), "{verdict}");
    }
}

#[tokio::test]
async fn a_store_that_is_gone_shows_with_its_server_and_reason() {
    let mut redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let mut events = Events::open(&service).await;
    let (name, state) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &state["ready"]), ("state", &json!(true)));
    assert_eq!(state["servers"][0]["ready"], true);
    redis.kill();
    let state = loop {
        let (name, state) = events.next().await.unwrap();
        if name == "state" && state["ready"] == false {
            break state;
        }
    };
    assert!(state["reason"].as_str().unwrap().contains("can't be reached"), "{state}");
    assert_eq!(state["servers"][0]["ready"], false);
}

#[tokio::test]
async fn a_stream_tells_each_second_and_what_changed_and_ends_with_the_service() {
    let (mut service, data, _) = start().await;
    let mut events = Events::open(&service).await;
    let (name, state) = events.next().await.unwrap();
    assert_eq!((name.as_str(), &state["policies"][0]["checks"]["allowed"]), ("state", &json!(0)));
    for _ in 0..7 {
        data.take("api", "k", 1).await.unwrap();
    }
    let (mut allowed, mut last, mut told) = (0, None, 0);
    while allowed < 7 || told < 7 {
        let (name, event) = events.next().await.unwrap();
        if name == "state" {
            told = event["policies"][0]["checks"]["allowed"].as_u64().unwrap();
            continue;
        }
        assert_eq!(name, "second");
        let second = event["unix_s"].as_u64().unwrap();
        assert!(last.is_none_or(|last| last < second), "{event}");
        last = Some(second);
        allowed += event["checks"]["allowed"].as_u64().unwrap();
    }
    assert_eq!((allowed, told), (7, 7));

    let asked = Instant::now();
    service.process().signal(Signal::TERM).unwrap();
    while events.next().await.is_some() {}
    let status = service.process().exited(Duration::from_secs(8)).await.unwrap();
    assert!(status.success());
    // A request in flight would have held it up for 10 s.
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[tokio::test]
async fn streams_are_bounded_and_free_again_once_their_readers_leave() {
    let (service, _, admin) = start().await;
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(Events::open(&service).await);
    }
    assert_eq!(Events::ask(&service).await.status(), 503);
    assert_eq!(admin.get("/v1/overview").await.unwrap().status, 200);
    drop(streams);
    until("a stream is free", Duration::from_secs(10), async || {
        (Events::ask(&service).await.status() == 200).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn pages_of_other_sites_can_do_nothing() {
    let (_service, data, admin) = start().await;
    for _ in 0..20 {
        data.take("api", "k", 1).await.unwrap();
    }
    let reset = json!({ "policy": "api", "key": "k" }).to_string();
    for headers in [
        [("sec-fetch-site", "cross-site"), ("origin", "https://evil.example")],
        [("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:3000")],
        [("content-type", "text/plain"), ("origin", "null")],
        [("host", "rebound.evil.example"), ("origin", "http://rebound.evil.example")],
    ] {
        let answer = admin.send_with_body(Method::POST, "/v1/reset", &headers, &reset).await.unwrap();
        assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(admin.send(Method::GET, "/v1/overview", &headers).await.unwrap().status, 403, "{headers:?}");
    }
    assert_eq!(data.take("api", "k", 1).await.unwrap().status, 429);
    let answer = admin.send_with_body(Method::POST, "/v1/reset", &[("sec-fetch-site", "same-origin")], &reset).await;
    assert_eq!(answer.unwrap().status, 200);
    assert_eq!(data.take("api", "k", 1).await.unwrap().status, 200);
}

#[tokio::test]
async fn pages_of_other_sites_can_neither_check_nor_refund() {
    let (_service, data, _) = start().await;
    let body = json!({ "checks": [{ "policy": "api", "key": "k" }] }).to_string();
    let ask = async |path: &str, headers: &[(&str, &str)]| {
        data.send_with_body(Method::POST, path, headers, &body).await.unwrap().status
    };
    assert_eq!(ask("/v1/check", &[("host", "limits.internal")]).await, 200);
    for headers in [
        [("sec-fetch-site", "cross-site"), ("content-type", "text/plain")],
        [("sec-fetch-site", "same-site"), ("origin", "http://127.0.0.1:3000")],
        [("content-type", "text/plain"), ("origin", "https://evil.example")],
    ] {
        for path in ["/v1/check", "/v1/refund", "/v1/lease"] {
            assert_eq!(ask(path, &headers).await, 403, "{path} {headers:?}");
        }
    }
    // Nothing was taken, and nothing given back, since the one check that was answered.
    let answer = data.take("api", "k", 0).await.unwrap().json();
    assert_eq!(answer["results"][0]["remaining"], 19, "{answer}");
}

#[tokio::test]
async fn the_page_allows_nothing_but_itself() {
    let (_service, data, admin) = start().await;
    for path in ["/", "/dashboard/app.js", "/dashboard/service.js", "/dashboard/chart.js", "/dashboard/style.css"] {
        let answer = admin.get(path).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; "), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        // What callers ask is no place for it.
        assert_eq!(data.get(path).await.unwrap().status, 404, "{path}");
    }
}
