//! Real Envoy with its own rate limit filter, by `envoy/ratelimit-filter.yaml`.

use std::time::Duration;

use serde_json::{Value, json};
use sluicegate_tests::{
    Answer, Client, Descriptor, Envoy, Overlay, RateLimitClient, Redis, Service, Upstream, exchange, until,
};

/// The `rate_limit_service` of `sluicegate.yaml`, where it is a comment. Nothing comes back before a test is over.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
policies:
  login: { limits: [{ name: minute, capacity: 10, refill: 10, per: 60m, interval: true }] }
  api: { limits: [{ name: hour, capacity: 10, refill: 10, per: 1h, interval: true }] }
  per-address: { limits: [{ name: hour, capacity: 100, refill: 100, per: 1h, interval: true }] }
rate_limit_service:
  domains:
    edge:
      - { match: [{ generic_key: login }, remote_address], policy: login }
      - { match: [{ generic_key: api }, api_key], policy: api, key: [{ entry: api_key, secret: true }] }
      - { match: [remote_address], policy: per-address }
";

struct World {
    envoy: Envoy,
    upstream: Upstream,
    service: Service,
    redis: Redis,
    client: Client,
}

/// With a timeout that only a fault meets, unless `overlay` has another.
async fn start(overlay: impl FnOnce(Overlay) -> Overlay) -> World {
    start_with(SERVICE, overlay).await
}

async fn start_with(service: &str, overlay: impl FnOnce(Overlay) -> Overlay) -> World {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(service, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let file = Overlay::rate_limit_filter(service.port(), upstream.port());
    let envoy = Envoy::start(&overlay(file.filter(json!({ "timeout": "20s" })))).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    World { envoy, upstream, service, redis, client }
}

async fn api(client: &Client, key: &str) -> Answer {
    client.send("GET".parse().unwrap(), "/api/hello", &[("x-api-key", key)]).await.unwrap()
}

#[tokio::test]
async fn ten_pass_and_the_next_is_429_with_our_headers() {
    let world = start(|file| file).await;
    for left in (0..10).rev() {
        let answer = api(&world.client, "alice").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let limit = format!("\"api.hour\";r={left};t=");
        assert!(answer.header("ratelimit").unwrap().starts_with(&limit), "{answer:?}");
        assert_eq!(answer.reason(), None);
    }
    let denied = api(&world.client, "alice").await;
    assert_eq!((denied.status, denied.reason()), (429, Some("over_limit")), "{denied:?}");
    assert_eq!(denied.header("ratelimit-policy"), Some("\"api.hour\";q=10;w=3600, \"per-address.hour\";q=100;w=3600"));
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=3600).contains(&wait), "{wait}");
    assert_eq!(denied.header("x-envoy-ratelimited"), Some("true"));
    assert_eq!(world.upstream.take_seen().len(), 10);

    // Others are others, and the denied request cost the address nothing.
    assert_eq!(api(&world.client, "bob").await.status, 200);
    let none = world.client.get("/api/hello").await.unwrap();
    assert!(none.header("ratelimit").unwrap().starts_with("\"hour\";r=88;"), "{none:?}");
    // A route without limits asks nothing.
    assert_eq!(world.client.get("/").await.unwrap().header("ratelimit"), None);
    // The key of the API is not in the store.
    let mut connection = world.redis.connection().await.unwrap();
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
    assert!(keys.len() == 3 && keys.iter().all(|key| !key.contains("alice")), "{keys:?}");
    assert!(world.envoy.stat("cluster.sluicegate.health_check.success").await.unwrap() > 0);
}

#[tokio::test]
async fn of_50_requests_at_once_10_pass() {
    let world = start(|file| file).await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let client = world.client.clone();
        tasks.spawn(async move { client.get("/login").await.unwrap().status });
    }
    let statuses = tasks.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 10);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 40);
}

/// Without an answer the filter's own `failure_mode_deny` decides, until there is one again.
#[tokio::test]
async fn a_store_that_is_gone_passes_or_fails_as_the_filter_says() {
    for (deny, status) in [(false, 200), (true, 500)] {
        let mut world = start(|file| file.filter(json!({ "failure_mode_deny": deny }))).await;
        assert!(api(&world.client, "alice").await.header("ratelimit").is_some());
        world.redis.kill();
        for _ in 0..20 {
            let answer = api(&world.client, "alice").await;
            assert_eq!((answer.status, answer.header("ratelimit")), (status, None), "{answer:?}");
        }
        world.redis.restart().await.unwrap();
        until("answers to count again", Duration::from_secs(10), async || {
            api(&world.client, "carol").await.header("ratelimit").map(|_| ())
        })
        .await
        .unwrap();
    }
}

/// Envoy sends its timeout along, so that the service never works for nobody.
#[tokio::test]
async fn a_frozen_store_is_waited_for_as_long_as_the_filter_says() {
    let world = start(|file| file.filter(json!({ "timeout": "0.1s", "failure_mode_deny": true }))).await;
    // The first connection takes its time.
    until("an answer in time", Duration::from_secs(10), async || {
        (api(&world.client, "alice").await.status == 200).then_some(())
    })
    .await
    .unwrap();
    world.redis.freeze();
    let answer = api(&world.client, "alice").await;
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(answer.elapsed < Duration::from_millis(100 + 250), "{:?}", answer.elapsed);
    world.redis.thaw();
    until("answers to count again", Duration::from_secs(10), async || {
        (api(&world.client, "carol").await.status == 200).then_some(())
    })
    .await
    .unwrap();
}

/// A byte that no string of a proto may have must not make an error of a question: by default errors pass.
#[tokio::test]
async fn bytes_that_are_not_text_are_no_way_around_a_limit() {
    let world = start(|file| file).await;
    let request = b"GET /api/hello HTTP/1.1\r\nhost: test\r\nx-api-key: \xff\xfe\r\nconnection: close\r\n\r\n";
    for _ in 0..10 {
        let head = exchange(world.envoy.port(), request).await.unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("\r\nratelimit: "), "{head}");
    }
    let head = exchange(world.envoy.port(), request).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
}

/// One route with these limits, in the form that may have `hits_addend`.
fn route(limits: &Value) -> Value {
    let kind = "type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute";
    json!([{
        "match": { "prefix": "/" },
        "route": { "cluster": "upstream" },
        "typed_per_filter_config": { "envoy.filters.http.ratelimit": { "@type": kind, "rate_limits": limits } },
    }])
}

#[tokio::test]
async fn a_routes_hits_are_the_cost_and_envoys_own_headers_work() {
    let limits = json!([{ "actions": [{ "remote_address": {} }], "hits_addend": { "number": 30 } }]);
    let headers = json!({ "enable_x_ratelimit_headers": "DRAFT_VERSION_03" });
    let world = start(|file| file.routes(route(&limits)).filter(headers)).await;
    for left in ["70", "40", "10"] {
        let answer = world.client.get("/").await.unwrap();
        assert_eq!((answer.status, answer.header("x-ratelimit-remaining")), (200, Some(left)), "{answer:?}");
        assert_eq!(answer.header("x-ratelimit-limit"), Some("100, 100;w=3600;name=\"per-address.hour\""));
        assert!(answer.header("x-ratelimit-reset").is_some());
    }
    assert_eq!(world.client.get("/").await.unwrap().status, 429);
}

/// What a request turned out to cost is given back when it is over.
#[tokio::test]
async fn negative_hits_when_the_stream_is_done_are_given_back() {
    let take = json!({ "actions": [{ "remote_address": {} }], "hits_addend": { "number": 50 } });
    let give = json!({
        "actions": [{ "remote_address": {} }],
        "hits_addend": { "number": 20, "is_negative_hits": true },
        "apply_on_stream_done": true,
    });
    let world = start(|file| file.routes(route(&json!([take, give])))).await;
    let service = Client::new(world.service.port()).unwrap();
    // The proxy gives back for a denied request as well, which took nothing.
    for (status, left) in [(200, 70), (200, 40), (429, 60)] {
        assert_eq!(world.client.get("/").await.unwrap().status, status);
        until("20 to be given back", Duration::from_secs(10), async || {
            let look = service.take("per-address", "127.0.0.1", 0).await.unwrap().json();
            (look["results"][0]["remaining"] == left).then_some(())
        })
        .await
        .unwrap();
    }
}

#[tokio::test]
async fn a_token_travels_as_initial_metadata() {
    let token = json!([{ "key": "authorization", "value": "Bearer hunter2" }]);
    let grpc = json!({ "rate_limit_service": { "grpc_service": { "initial_metadata": token } } });
    let service = format!("token: hunter2\n{SERVICE}");
    let world = start_with(&service, |file| file.filter(grpc).filter(json!({ "failure_mode_deny": true }))).await;
    assert_eq!(api(&world.client, "alice").await.status, 200);
    // Health is told without.
    assert!(world.envoy.stat("cluster.sluicegate.health_check.success").await.unwrap() > 0);
    let without = RateLimitClient::new(world.service.port()).unwrap();
    let refused = without.ask(&[Descriptor::new(&[("remote_address", "a")])]).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{refused:?}");
    assert_eq!(without.health("").await.unwrap(), 1);
}
