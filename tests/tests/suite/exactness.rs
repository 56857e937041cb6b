//! No bucket gives away more than it holds, however many take at once.

use serde_json::json;
use sluicegate_tests::{Answer, Client, Redis, Service, Stack};
use tokio::task::JoinSet;

/// Nothing comes back before the test is over. Long timeouts: a slow machine must not turn an answer into a failure.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  fifty:
    limits: [{ name: day, capacity: 50, refill: 50, per: 1d, interval: true }]
";

/// 200 at once.
async fn at_once<F>(ask: impl Fn() -> F) -> Vec<Answer>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for _ in 0..200 {
        tasks.spawn(ask());
    }
    tasks.join_all().await
}

fn count(answers: &[Answer], status: u16, reason: Option<&str>) -> usize {
    answers.iter().filter(|answer| (answer.status, answer.reason()) == (status, reason)).count()
}

#[tokio::test]
async fn the_service_allows_50_of_200_takes() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let answers = at_once(|| {
        let client = client.clone();
        async move { client.take("fifty", "user-42", 1).await.unwrap() }
    })
    .await;
    assert_eq!(count(&answers, 200, None), 50);
    assert_eq!(count(&answers, 429, None), 150);
    assert_eq!(redis.assert_all_keys_expire(), 1);
}

#[tokio::test]
async fn envoy_passes_50_of_200_requests() {
    let plugin = json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{
            "name": "all",
            "limits": [{ "policy": "fifty", "key": ["client_ip"] }],
            "on_failure": "closed",
        }],
    });
    let stack = Stack::start(SERVICE, &plugin).await.unwrap();
    let client = stack.client().unwrap();
    let answers = at_once(|| {
        let client = client.clone();
        async move { client.get("/").await.unwrap() }
    })
    .await;
    assert_eq!(count(&answers, 200, None), 50);
    assert_eq!(count(&answers, 429, Some("over_limit")), 150);
    assert_eq!(stack.upstream.take_seen().len(), 50);
}
