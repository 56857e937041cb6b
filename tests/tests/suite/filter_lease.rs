//! `lease`: what becomes of tokens that a proxy took in advance.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Envoy, Overlay, Redis, Reply, Service, Stack, StandIn, Upstream, until};

/// Nothing comes back before a test is over.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  wide:
    limits: [{ name: day, capacity: 1000, refill: 1000, per: 1d, interval: true }]
  narrow:
    limits: [{ name: day, capacity: 30, refill: 30, per: 1d, interval: true }]
  banned:
    limits: [{ name: day, capacity: 1000, refill: 1000, per: 1d, interval: true }]
    ban: { after: 100, within: 1h, for: 1h }
";

const WAIT: Duration = Duration::from_secs(20);

/// Of each account.
fn limit(policy: &str, lease: &str) -> Value {
    let mut limit = json!({ "policy": policy, "key": [{ "header": "x-account" }] });
    if !lease.is_empty() {
        limit["lease"] = json!({ "tokens": 50, "for": lease });
    }
    limit
}

fn plugin(limits: &[Value]) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{ "name": "all", "limits": limits, "on_failure": "closed" }],
    })
}

async fn ask(client: &Client, account: &str) -> Answer {
    client.send(Method::GET, "/", &[("x-account", account)]).await.unwrap()
}

/// Asks until a lease answered some requests; how many passed, of which all are.
async fn until_served(client: &Client, envoy: &Envoy, account: &str) -> u64 {
    let mut passed = 0;
    until("a lease to answer requests", WAIT, async || {
        for _ in 0..20 {
            let answer = ask(client, account).await;
            assert_eq!((answer.status, answer.reason()), (200, None), "{answer:?}");
            assert!(answer.header("ratelimit").unwrap().starts_with(r#""day";r="#), "{answer:?}");
            passed += 1;
        }
        (hits(envoy).await > 0).then_some(())
    })
    .await
    .unwrap();
    passed
}

async fn metric(envoy: &Envoy, name: &str) -> i64 {
    envoy.metric(&format!("sluicegate_{name}{{rule=\"all\"}}")).await.unwrap()
}

async fn hits(envoy: &Envoy) -> i64 {
    metric(envoy, "lease_hits_total").await
}

async fn left(service: &Service, policy: &str, account: &str) -> u64 {
    let looked = Client::new(service.port()).unwrap().take(policy, account, 0).await.unwrap().json();
    looked["results"][0]["remaining"].as_u64().unwrap()
}

async fn until_left(service: &Service, policy: &str, expected: u64) {
    until(&format!("{expected} of {policy} to be left"), WAIT, async || {
        (left(service, policy, "hot").await == expected).then_some(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_an_idle_subject_has_left_is_given_back() {
    let stack = Stack::start(SERVICE, &plugin(&[limit("wide", "1s")])).await.unwrap();
    let passed = until_served(&stack.client().unwrap(), &stack.envoy, "hot").await;
    until_left(&stack.service, "wide", 1_000 - passed).await;
    let (leased, hits) = (metric(&stack.envoy, "leased_tokens_total").await, hits(&stack.envoy).await);
    let returned = async || stack.envoy.metric("sluicegate_lease_returned_tokens_total{}").await.unwrap();
    until("what is left to be counted", WAIT, async || (returned().await == leased - hits).then_some(()))
        .await
        .unwrap();
    assert!(metric(&stack.envoy, "leases_total").await > 0);
}

#[tokio::test]
async fn cold_subjects_never_lease() {
    let stack = Stack::start(SERVICE, &plugin(&[limit("wide", "500ms")])).await.unwrap();
    let client = stack.client().unwrap();
    for account in 0..60 {
        for _ in 0..7 {
            assert_eq!(ask(&client, &format!("cold-{account}")).await.status, 200);
        }
    }
    let metrics = Client::new(stack.service.admin_port()).unwrap().get("/metrics").await.unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains(r#"path="/v1/check",status="200"} 420"#), "{metrics}");
    assert!(!metrics.contains("/v1/lease"), "{metrics}");
}

#[tokio::test]
async fn a_crash_of_a_proxy_loses_at_most_a_lease_of_a_subject() {
    let Stack { envoy, upstream, service, redis } =
        Stack::start(SERVICE, &plugin(&[limit("wide", "60s")])).await.unwrap();
    let passed = until_served(&Client::new(envoy.port()).unwrap(), &envoy, "hot").await;
    let held = metric(&envoy, "leased_tokens_total").await - hits(&envoy).await;
    drop(envoy);
    let left = left(&service, "wide", "hot").await;
    assert!((1_000 - passed - 50..=1_000 - passed).contains(&left), "{left} left after {passed}, {held} were held");
    drop((upstream, redis));
}

#[tokio::test]
async fn what_is_held_is_served_while_the_service_is_gone() {
    let Stack { envoy, upstream, mut service, redis } =
        Stack::start(SERVICE, &plugin(&[limit("wide", "60s")])).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    until_served(&client, &envoy, "hot").await;
    service.kill();
    let held = metric(&envoy, "leased_tokens_total").await - hits(&envoy).await;
    assert!(held > 0, "{held}");
    for _ in 0..held {
        let answer = ask(&client, "hot").await;
        assert_eq!((answer.status, answer.reason()), (200, None), "{answer:?}");
    }
    let answer = ask(&client, "hot").await;
    assert_eq!((answer.status, answer.reason()), (429, Some("failure_closed")), "{answer:?}");
    drop((upstream, redis));
}

#[tokio::test]
async fn a_denial_of_another_limit_gives_back_what_was_leased() {
    let limits = [limit("wide", "1s"), limit("narrow", "")];
    let stack = Stack::start(SERVICE, &plugin(&limits)).await.unwrap();
    let client = stack.client().unwrap();
    let mut passed = 0;
    until("a lease to answer denied requests", WAIT, async || {
        for _ in 0..20 {
            let answer = ask(&client, "hot").await;
            passed += u64::from(answer.status == 200);
            assert!(matches!(answer.reason(), None | Some("over_limit")), "{answer:?}");
        }
        (passed == 30 && hits(&stack.envoy).await > 40).then_some(())
    })
    .await
    .unwrap();
    until_left(&stack.service, "wide", 970).await;
    assert_eq!(left(&stack.service, "narrow", "hot").await, 0);
}

#[tokio::test]
async fn a_policy_that_can_not_be_leased_is_asked_for_once_and_then_checked() {
    let stack = Stack::start(SERVICE, &plugin(&[limit("banned", "2s")])).await.unwrap();
    let client = stack.client().unwrap();
    for _ in 0..200 {
        assert_eq!(ask(&client, "hot").await.status, 200);
    }
    let refused = stack.envoy.metric(r#"sluicegate_callout_failures_total{kind="config"}"#).await.unwrap();
    // Each worker asks for itself.
    assert!((1..=2).contains(&refused), "{refused}");
    assert!(stack.envoy.process().log().contains("there is no lease: config: status 422"));
    assert_eq!(left(&stack.service, "banned", "hot").await, 800);
}

#[tokio::test]
async fn a_service_that_knows_no_leases_is_asked_as_ever() {
    let service = StandIn::start(Reply::allowed()).await.unwrap();
    service.reply_at("/v1/lease", Reply::answer(404, "").marked());
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin(&[limit("wide", "2s")]));
    let envoy = Envoy::start(&overlay).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    for _ in 0..200 {
        assert_eq!(ask(&client, "hot").await.status, 200);
    }
    let asked = service.take_asked();
    assert_eq!(asked.iter().filter(|path| *path == "/v1/check").count(), 200);
    assert!((1..=2).contains(&asked.iter().filter(|path| *path == "/v1/lease").count()), "{asked:?}");
}

#[tokio::test]
async fn leases_stay_through_an_outage_of_redis_and_are_taken_again_after_it() {
    let mut redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = Overlay::new(service.port(), upstream.port()).plugin(&plugin(&[limit("wide", "60s")]));
    let envoy = Envoy::start(&overlay).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    until_served(&client, &envoy, "hot").await;
    redis.kill();
    assert_eq!(ask(&client, "hot").await.status, 200);
    redis.restart().await.unwrap();
    let before = metric(&envoy, "leases_total").await;
    until("another lease", WAIT, async || {
        for _ in 0..20 {
            ask(&client, "hot").await;
        }
        (metric(&envoy, "leases_total").await > before).then_some(())
    })
    .await
    .unwrap();
}
