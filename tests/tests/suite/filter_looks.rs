//! How denials look where the configuration says, and the headers that show the limits' state.

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Stack};
use sluicegate_wire::{Problem, header};

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  two:
    limits:
      - { name: day, capacity: 2, refill: 2, per: 1d, interval: true }
      - { name: wide, capacity: 1000, refill: 1000, per: 2d, interval: true }
";

fn plugin() -> Value {
    let rule = |name: &str, policy: &str| {
        json!({
            "name": name,
            "match": { "path": { "prefix": format!("/{name}/") } },
            "limits": [{ "policy": policy, "key": [{ "constant": name }] }],
            "on_failure": { "closed": { "status": 503 } },
        })
    };
    let mut own = rule("own", "two");
    own["reject"] = json!({
        "status": 503, "body": "Later\n", "headers": { "cache-control": "no-store", "content-type": "text/x-later" },
    });
    let mut missing = rule("missing", "two");
    missing["limits"][0]["key"] = json!([{ "header": "x-account", "missing": "deny" }]);
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [own, rule("top", "two"), missing, rule("refused", "no-such-policy")],
        "reject": { "status": 420, "body": "Calm\n", "headers": { "x-why": "limits" } },
        "headers": ["x_rate_limit"],
    })
}

fn assert_limits(answer: &Answer, remaining: &str) {
    assert_eq!(answer.header("x-ratelimit-limit"), Some("2"), "{answer:?}");
    assert_eq!(answer.header("x-ratelimit-remaining"), Some(remaining), "{answer:?}");
    let reset: u64 = answer.header("x-ratelimit-reset").unwrap().parse().unwrap();
    assert!((86_340..=86_400).contains(&reset), "{reset} s");
    // Those that the configuration doesn't list.
    assert_eq!((answer.header(header::RATE_LIMIT), answer.header(header::RATE_LIMIT_POLICY)), (None, None));
}

#[tokio::test]
async fn denials_and_limits_look_as_the_configuration_says() {
    let stack = Stack::start(SERVICE, &plugin()).await.unwrap();
    let client = stack.client().unwrap();
    let get = async |path: &str| client.get(path).await.unwrap();
    for (path, status, body, content_type, (name, value)) in [
        ("/own/x", 503, "Later\n", "text/x-later", ("cache-control", "no-store")),
        ("/top/x", 420, "Calm\n", "text/plain; charset=utf-8", ("x-why", "limits")),
    ] {
        for remaining in ["1", "0"] {
            let answer = get(path).await;
            assert_eq!((answer.status, answer.header(name)), (200, None), "{answer:?}");
            assert_limits(&answer, remaining);
        }
        let denied = get(path).await;
        assert_eq!((denied.status, denied.reason()), (status, Some("over_limit")), "{denied:?}");
        assert_eq!((denied.body.as_slice(), denied.header("content-type")), (body.as_bytes(), Some(content_type)));
        assert_eq!(denied.header(name), Some(value), "{denied:?}");
        assert!(denied.header(header::RETRY_AFTER).is_some(), "{denied:?}");
        assert_limits(&denied, "0");
        let head = client.send(Method::HEAD, path, &[]).await.unwrap();
        assert_eq!((head.status, head.reason(), head.body.len()), (status, Some("over_limit"), 0), "{head:?}");
    }
    let missing = get("/missing/x").await;
    assert_eq!((missing.status, missing.reason(), missing.body.as_slice()), (420, Some("missing_key"), &b"Calm\n"[..]));

    // A failure verdict has a look of its own: nobody takes it for a denial.
    let failed = get("/refused/x").await;
    assert_eq!((failed.status, failed.reason()), (503, Some("failure_closed")), "{failed:?}");
    assert_eq!(failed.header("content-type"), Some(Problem::CONTENT_TYPE));
    assert_eq!((failed.header("x-why"), failed.header("x-ratelimit-limit")), (None, None), "{failed:?}");
    assert_eq!(failed.json()["type"], Problem::TEMPORARY_REDUCED_CAPACITY);
    let config = r#"sluicegate_callout_failures_total{kind="config"}"#;
    assert_eq!(stack.envoy.metric(config).await.unwrap(), 1);
}
