//! Rules, policies and assertions that several suites share.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, quiet, until};
use sluicegate_wire::{Problem, header};

/// The filter's timeout where failures are timed.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(150);

/// The filter's timeout where an answer must never be late, however busy the machine.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// How much later than the timeout a failure verdict may come, in the median and each.
const MEDIAN_SLACK: Duration = Duration::from_millis(20);
const EACH_SLACK: Duration = Duration::from_millis(250);

/// A store timeout over the filter's, so that the filter's is the one that ends a wait; a bucket that nobody empties,
/// and whose key stays for the look at its TTL.
pub(crate) const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 5s }
drain: 500ms
policies:
  wide:
    limits: [{ name: day, capacity: 100000, refill: 100000, per: 1d, interval: true }]
";

/// `/open/` fails open and `/closed/` closed.
pub(crate) fn plugin(timeout: Duration) -> Value {
    let timeout = format!("{}ms", timeout.as_millis());
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": timeout },
        "rules": [
            {
                "name": "open",
                "match": { "path": { "prefix": "/open/" } },
                "limits": [{ "policy": "wide", "key": [{ "header": "x-api-key", "secret": true }] }],
                "on_failure": "open",
            },
            {
                "name": "closed",
                "match": { "path": { "prefix": "/closed/" } },
                "limits": [{ "policy": "wide", "key": ["client_ip"] }],
                "on_failure": "closed",
            },
        ],
    })
}

/// A request that the service decided and that reached the upstream.
#[track_caller]
pub(crate) fn assert_counted(answer: &Answer) {
    assert_eq!((answer.status, answer.reason()), (200, None), "{answer:?}");
    assert!(answer.header(header::RATE_LIMIT).is_some(), "{answer:?}");
}

/// Both rules give their failure verdict, each with its marks and no word of a limit, and none by [`LONG`] having passed.
pub(crate) async fn assert_failure_verdicts(client: &Client, case: &str) {
    let start = Instant::now();
    let open = client.get("/open/x").await.unwrap();
    assert_eq!((open.status, open.reason()), (200, Some("failure_open")), "{case}: {open:?}");
    assert_eq!(open.header(header::RATE_LIMIT), None, "{case}");

    let closed = client.get("/closed/x").await.unwrap();
    assert_eq!((closed.status, closed.reason()), (429, Some("failure_closed")), "{case}: {closed:?}");
    assert_eq!(closed.header(header::RETRY_AFTER), Some("1"), "{case}");
    assert_eq!(closed.header(header::RATE_LIMIT), None, "{case}");
    assert_eq!(closed.header("content-type"), Some(Problem::CONTENT_TYPE), "{case}");
    assert_eq!(closed.json()["type"], Problem::TEMPORARY_REDUCED_CAPACITY, "{case}");
    assert!(start.elapsed() < LONG / 2, "{case}: {:?}", start.elapsed());
}

/// The failure verdicts again and again, each within the time bounds. What Envoy takes for a request that no rule
/// matches is measured beside them and comes on top: about 1 ms, more where the machine is busy.
pub(crate) async fn assert_failure_verdicts_in_time(client: &Client, case: &str) {
    let _quiet = quiet().await;
    for (path, expected) in [("/open/x", (200, "failure_open")), ("/closed/x", (429, "failure_closed"))] {
        let (mut times, mut unmatched) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            unmatched.push(client.get("/").await.unwrap().elapsed);
            let answer = client.get(path).await.unwrap();
            assert_eq!((answer.status, answer.reason()), (expected.0, Some(expected.1)), "{case}: {answer:?}");
            times.push(answer.elapsed);
        }
        let (unmatched, slowest) = (median(unmatched), *times.iter().max().unwrap());
        let median = median(times);
        assert!(median <= TIMEOUT + MEDIAN_SLACK + unmatched, "{case}: {path}: {median:?}, unmatched {unmatched:?}");
        assert!(slowest <= TIMEOUT + EACH_SLACK + unmatched, "{case}: {path}: {slowest:?}, unmatched {unmatched:?}");
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Both rules come to count, by themselves.
pub(crate) async fn assert_counts(client: &Client, case: &str) {
    for path in ["/open/x", "/closed/x"] {
        until(&format!("{path} to be counted ({case})"), Duration::from_secs(10), async || {
            let answer = client.get(path).await.unwrap();
            (answer.reason().is_none() && answer.header(header::RATE_LIMIT).is_some()).then_some(())
        })
        .await
        .unwrap();
    }
}
