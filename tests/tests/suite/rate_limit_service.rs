//! Envoy's rate limit service over gRPC, as its clients see it.

use std::time::{Duration, Instant};

use sluicegate_tests::{
    Client, Code, Descriptor, RateLimitClient, RateLimitRequest, RateLimitResponse, Redis, Service, until,
};
use tokio::task::JoinSet;
use tonic::Code as Grpc;

/// Nothing comes back before a test is over. Long timeouts: a slow machine must not turn an answer into a failure.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  fifty: { limits: [{ name: day, capacity: 50, refill: 50, per: 1d, interval: true }] }
  three: { limits: [{ name: day, capacity: 3, refill: 3, per: 1d, interval: true }] }
rate_limit_service:
  domains:
    edge:
      - { match: [{ generic_key: api }, user], policy: fifty }
      - { match: [remote_address], policy: three }
";

async fn start() -> (Redis, Service, RateLimitClient) {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = RateLimitClient::new(service.port()).unwrap();
    (redis, service, client)
}

fn user(user: &str) -> Descriptor {
    Descriptor::new(&[("generic_key", "api"), ("user", user)])
}

fn address(address: &str) -> Descriptor {
    Descriptor::new(&[("remote_address", address)])
}

/// The overall code, and the code and what is left of each descriptor.
fn told(answer: &RateLimitResponse) -> (Code, Vec<(Code, u32)>) {
    let statuses = answer.statuses.iter().map(|status| (status.code(), status.limit_remaining));
    (answer.overall_code(), statuses.collect())
}

#[tokio::test]
async fn of_200_calls_at_once_50_are_within_the_limit() {
    let (redis, _service, client) = start().await;
    let mut tasks = JoinSet::new();
    for _ in 0..200 {
        let client = client.clone();
        tasks.spawn(async move { client.ask(&[user("u"), address("a").hits(0)]).await.unwrap().overall_code() });
    }
    let codes = tasks.join_all().await;
    assert_eq!(codes.iter().filter(|code| **code == Code::Ok).count(), 50);
    assert_eq!(codes.iter().filter(|code| **code == Code::OverLimit).count(), 150);
    assert_eq!(redis.assert_all_keys_expire(), 1, "what is looked at is not written");
}

#[tokio::test]
async fn statuses_are_in_the_order_of_the_descriptors_and_a_denial_charges_nothing() {
    let (_redis, _service, client) = start().await;
    let all = [address("a"), Descriptor::new(&[("unknown", "x")]), user("u").hits(5)];
    for left in 1..=3 {
        let expected = vec![(Code::Ok, 3 - left), (Code::Ok, 0), (Code::Ok, 50 - 5 * left)];
        assert_eq!(told(&client.ask(&all).await.unwrap()), (Code::Ok, expected));
    }
    let denied = vec![(Code::OverLimit, 0), (Code::Ok, 0), (Code::Ok, 35)];
    assert_eq!(told(&client.ask(&all).await.unwrap()), (Code::OverLimit, denied));
    assert_eq!(told(&client.ask(&[user("u").hits(0)]).await.unwrap()), (Code::Ok, vec![(Code::Ok, 35)]));

    // The cost of the request is that of each descriptor without its own.
    let question =
        RateLimitRequest { domain: "edge".into(), descriptors: vec![user("v"), user("w").hits(1)], hits_addend: 7 };
    let answer = client.send(question, Duration::from_secs(30)).await.unwrap();
    assert_eq!(told(&answer), (Code::Ok, vec![(Code::Ok, 43), (Code::Ok, 49)]));
}

/// A proxy with our filter and one with its own share limits, during a migration or for good.
#[tokio::test]
async fn the_buckets_are_those_of_checks_over_http() {
    let (_redis, service, client) = start().await;
    let http = Client::new(service.port()).unwrap();
    assert_eq!(http.take("three", "203.0.113.7", 2).await.unwrap().status, 200);
    assert_eq!(told(&client.ask(&[address("203.0.113.7")]).await.unwrap()), (Code::Ok, vec![(Code::Ok, 0)]));
    assert_eq!(http.take("three", "203.0.113.7", 1).await.unwrap().status, 429);
}

#[tokio::test]
async fn a_changed_mapping_is_used_without_a_restart() {
    let (_redis, service, client) = start().await;
    assert_eq!(told(&client.ask(&[address("a").hits(0)]).await.unwrap()), (Code::Ok, vec![(Code::Ok, 3)]));
    let config = std::fs::read_to_string(service.config()).unwrap();
    let changed = config.replace(r#""policy":"three""#, r#""policy":"fifty""#);
    assert_ne!(changed, config);
    std::fs::write(service.config(), changed).unwrap();
    until("the mapping to be used", Duration::from_secs(10), async || {
        let answer = client.ask(&[address("a").hits(0)]).await.unwrap();
        (answer.statuses[0].limit_remaining == 50).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_store_that_is_gone_is_unavailable_until_it_is_back() {
    let (mut redis, _service, client) = start().await;
    client.ask(&[address("a")]).await.unwrap();
    redis.kill();
    assert_eq!(client.ask(&[address("a")]).await.unwrap_err().code(), Grpc::Unavailable);
    redis.restart().await.unwrap();
    until("calls to be answered again", Duration::from_secs(10), async || client.ask(&[address("b")]).await.ok())
        .await
        .unwrap();
}

#[tokio::test]
async fn the_callers_time_is_kept() {
    let (redis, service, client) = start().await;
    client.ask(&[address("a")]).await.unwrap();
    redis.freeze();
    let time = Duration::from_millis(100);
    let question = RateLimitRequest { domain: "edge".into(), descriptors: vec![address("a")], hits_addend: 0 };
    let mut bytes = reqwest::header::HeaderMap::new();
    bytes.insert("grpc-timeout", "100m".parse().unwrap());
    // tonic's client would give up by itself, so this one asks without it.
    let start = Instant::now();
    let answer = raw(&service, &question, bytes).await;
    assert_eq!(answer.headers()["grpc-status"], "14");
    assert!(start.elapsed() >= time && start.elapsed() <= time + Duration::from_millis(250), "{:?}", start.elapsed());
    redis.thaw();
}

#[tokio::test]
async fn what_is_malformed_or_too_large_is_said_to_be() {
    let (_redis, service, client) = start().await;
    let empty = client.ask(&[]).await.unwrap_err();
    assert_eq!(
        (empty.code(), empty.message()),
        (Grpc::InvalidArgument, "descriptors: there are none; send at least one")
    );
    let large = client.ask(&[user(&"x".repeat(300_000))]).await.unwrap_err();
    assert_eq!(
        (large.code(), large.message()),
        (Grpc::ResourceExhausted, "the body is over 262144 bytes; send several requests")
    );
    let long = client.ask(&[user(&"x".repeat(60_000))]).await.unwrap();
    assert_eq!(long.statuses[0].limit_remaining, 49);
    let mut timeout = reqwest::header::HeaderMap::new();
    timeout.insert("grpc-timeout", "soon".parse().unwrap());
    let question = RateLimitRequest { domain: "edge".into(), descriptors: vec![address("a")], hits_addend: 0 };
    assert_eq!(raw(&service, &question, timeout).await.headers()["grpc-status"], "3");
    // The service lives on.
    client.ask(&[address("a")]).await.unwrap();
}

#[tokio::test]
async fn health_is_readiness() {
    let mut redis = Redis::reserve().unwrap();
    let service = Service::start_unready(SERVICE, &redis.url()).await.unwrap();
    let client = RateLimitClient::new(service.port()).unwrap();
    let services = ["", "envoy.service.ratelimit.v3.RateLimitService"];
    for service in services {
        assert_eq!(client.health(service).await.unwrap(), 2);
    }
    redis.restart().await.unwrap();
    for service in services {
        until("it to serve", Duration::from_secs(10), async || {
            (client.health(service).await.unwrap() == 1).then_some(())
        })
        .await
        .unwrap();
    }
    assert_eq!(client.health("other").await.unwrap_err().code(), Grpc::NotFound);
}

/// A call without a gRPC library: one frame, uncompressed.
async fn raw(service: &Service, question: &RateLimitRequest, headers: reqwest::header::HeaderMap) -> reqwest::Response {
    let message = prost::Message::encode_to_vec(question);
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    let url =
        format!("http://127.0.0.1:{}/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", service.port());
    let http = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    http.post(url).headers(headers).header("content-type", "application/grpc").body(frame).send().await.unwrap()
}
