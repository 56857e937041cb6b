//! The store as its callers see it.

use sluicegate_lua::Unit;

use super::*;
use crate::config::Config;

/// A store that nobody can reach.
async fn down() -> Store {
    const CONFIG: &str = "
store: { url: unix:///nowhere/redis.sock, timeout: 5s }
policies: { api: { limits: [{ name: burst, capacity: 1, refill: 1, per: 1s }] } }
";
    let store = Store::open(&Config::parse("f.yaml", CONFIG, &|_| None).unwrap().store).unwrap();
    while store.ready().is_err_and(|error| error.to_string().ends_with("connecting")) {
        tokio::task::yield_now().await;
    }
    store
}

fn take() -> Take {
    Take { takes: 1, units: vec![Unit { charges: Vec::new(), enforced: true }] }
}

/// The median of many, since a busy machine stops anybody for some ms.
#[tokio::test]
async fn a_store_that_is_down_fails_within_a_ms() {
    let store = down().await;
    let mut took = Vec::new();
    for _ in 0..1_001 {
        let asked = Instant::now();
        let failed = store.take(take(), asked + Duration::from_secs(5)).await.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)), "{failed}");
        took.push(asked.elapsed());
    }
    took.sort();
    let median = took[took.len() / 2];
    assert!(median < Duration::from_millis(1), "{median:?}");
}

/// Each failure is counted by its reason, and all reasons are there from the start.
#[tokio::test]
async fn failures_are_counted_by_reason() {
    let store = down().await;
    let mut registry = Registry::default();
    store.register(&mut registry);
    for _ in 0..3 {
        store.take(take(), Instant::now() + Duration::from_secs(5)).await.unwrap_err();
    }
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for reason in StoreError::REASONS {
        let count = if reason == "unavailable" { 3 } else { 0 };
        let line = format!("failures_total{{reason=\"{reason}\"}} {count}\n");
        assert!(text.contains(&line), "{line} is not in {text}");
    }
    assert!(text.contains("joined_takes_total 0\n") && text.contains("give_back_failures_total 0\n"), "{text}");
}
