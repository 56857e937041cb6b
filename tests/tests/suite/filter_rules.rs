//! Rules, keys and choices with what a real Envoy says of a request.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::{Client, Envoy, Overlay, Redis, Service, Stack, Upstream, exchange, until};

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  address: { limits: [{ name: day, capacity: 20, refill: 20, per: 1d, interval: true }] }
  login: { limits: [{ name: day, capacity: 10, refill: 10, per: 1d, interval: true }] }
  gold: { limits: [{ name: day, capacity: 50, refill: 50, per: 1d, interval: true }] }
";

fn plugin(rules: &Value) -> Value {
    json!({ "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" }, "rules": rules })
}

/// What is left for a subject, without taking.
async fn left(service: &Service, policy: &str, key: &str) -> u64 {
    let looked = Client::new(service.port()).unwrap().take(policy, key, 0).await.unwrap().json();
    looked["results"][0]["remaining"].as_u64().unwrap()
}

async fn until_left(service: &Service, policy: &str, key: &str, expected: u64) {
    until(&format!("{expected} to be left of {policy}"), Duration::from_secs(10), async || {
        (left(service, policy, key).await == expected).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn joined_rules_take_together_and_give_back_each_its_own() {
    let stack = Stack::start(
        SERVICE,
        &plugin(&json!([
            { "name": "everyone", "limits": [{ "policy": "address", "key": ["client_ip"] }], "continue": true },
            {
                "name": "login",
                "match": { "methods": "GET", "path": { "exact": "/login", "ignore_case": true, "trailing_slash": "ignore" } },
                "limits": [{ "policy": "login", "key": ["client_ip"] }],
                "charge": { "only_status": [401] },
            },
        ])),
    )
    .await
    .unwrap();
    let client = stack.client().unwrap();
    let left_of = async |policy: &str| left(&stack.service, policy, "127.0.0.1").await;
    assert_eq!(client.get("/other").await.unwrap().status, 200);
    assert_eq!((left_of("address").await, left_of("login").await), (19, 10));
    stack.upstream.answer_with(401);
    for path in ["/login", "/LOGIN/", "//%6cogin?x", "/x/../Login"] {
        assert_eq!(client.get(path).await.unwrap().status, 401, "{path}");
    }
    assert_eq!((left_of("address").await, left_of("login").await), (15, 6));
    stack.upstream.answer_with(200);
    assert_eq!(client.get("/login").await.unwrap().status, 200);
    until_left(&stack.service, "address", "127.0.0.1", 14).await;
    until_left(&stack.service, "login", "127.0.0.1", 6).await;
    assert_eq!(stack.envoy.metric(r#"sluicegate_refunds_total{rule="login"}"#).await.unwrap(), 1);
}

#[tokio::test]
async fn routes_of_the_proxy_match_and_choose() {
    let route = |prefix: &str, name: &str, metadata: &Value| {
        json!({
            "name": name, "match": { "prefix": prefix }, "route": { "cluster": "upstream", "timeout": "10s" },
            "metadata": { "filter_metadata": { "sluicegate": metadata } },
        })
    };
    let routes = json!([
        route("/heavy", "priced", &json!({ "tenant": "t1", "cost": 7, "plan": "gold" })),
        route("/odd", "priced", &json!({ "tenant": 12, "cost": 0.5, "plan": "silver" })),
        route("/", "free", &json!({})),
    ]);
    let plugin = plugin(&json!([{
        "name": "priced",
        "match": { "route": "priced" },
        "limits": [{
            "policy": { "from": { "route_metadata": ["sluicegate", "plan"] }, "map": { "gold": "gold" }, "default": "login" },
            "key": [{ "route_metadata": ["sluicegate", "tenant"] }],
            "cost": { "from": { "route_metadata": ["sluicegate", "cost"] }, "max": 10 },
        }],
    }]));
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin).routes(routes);
    let envoy = Envoy::start(&overlay).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    for path in ["/heavy", "/odd", "/"] {
        assert_eq!(client.get(path).await.unwrap().status, 200, "{path}");
    }
    assert_eq!(left(&service, "gold", "t1").await, 43);
    // A number is its digits; a plan that isn't in the map and a cost that is no number of tokens are the defaults.
    assert_eq!(left(&service, "login", "12").await, 9);
    assert_eq!(envoy.metric(r#"sluicegate_fallbacks_total{rule="priced"}"#).await.unwrap(), 1);
    assert_eq!(envoy.metric("sluicegate_unmatched_total{}").await.unwrap(), 1);
}

#[tokio::test]
async fn a_value_left_out_or_doubled_is_as_the_part_says() {
    let limit = |missing: &str| json!([{ "policy": "login", "key": [{ "header": "x-key", "missing": missing }] }]);
    let rule = |name: &str| json!({ "name": name, "match": { "path": { "prefix": format!("/{name}") } }, "limits": limit(name) });
    let stack = Stack::start(SERVICE, &plugin(&json!([rule("deny"), rule("skip"), rule("shared")]))).await.unwrap();
    let client = stack.client().unwrap();
    let denied = client.get("/deny").await.unwrap();
    assert_eq!((denied.status, denied.reason(), denied.header("retry-after")), (429, Some("missing_key"), None));
    assert_eq!(client.get("/skip").await.unwrap().status, 200);
    for path in ["/deny", "/skip", "/shared"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-key: a\r\nx-key: b\r\nconnection: close\r\n\r\n");
        let answer = exchange(stack.envoy.port(), request.as_bytes()).await.unwrap();
        let counted = answer.contains("\r\nratelimit: \"day\";");
        assert_eq!(
            (answer.starts_with("HTTP/1.1 200"), counted),
            (path != "/deny", path != "/deny"),
            "{path}: {answer}"
        );
    }
    let metric = async |name: &str| stack.envoy.metric(name).await.unwrap();
    assert_eq!(metric(r#"sluicegate_requests_total{rule="deny",verdict="missing_key"}"#).await, 2);
    assert_eq!(metric(r#"sluicegate_skipped_total{rule="skip"}"#).await, 1);
}
