//! The service's metrics: they count what was answered, and the README lists them all.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use serde_json::json;
use sluicegate_tests::{Client, Redis, Service, repository};

/// Refills once a day. A ban strikes with the second denial.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  two:
    limits:
      - { name: burst, capacity: 2, refill: 2, per: 1d, interval: true }
      - { name: day, capacity: 50, refill: 50, per: 1d, interval: true }
  banned:
    limits: [{ name: burst, capacity: 1, refill: 1, per: 1d, interval: true }]
    ban: { after: 2, within: 1h, for: 1h }
  idle:
    limits: [{ name: burst, capacity: 1, refill: 1, per: 1d }]
";

/// What `/metrics` says: each series without its value, and that.
struct Scrape(BTreeMap<String, f64>);

impl Scrape {
    async fn of(service: &Service) -> Self {
        let answer = Client::new(service.admin_port()).unwrap().get("/metrics").await.unwrap();
        assert_eq!(answer.header("content-type"), Some("application/openmetrics-text; version=1.0.0; charset=utf-8"));
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.ends_with("# EOF\n"), "{text}");
        let series = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (series, value) = line.rsplit_once(' ').unwrap();
            (series.to_owned(), value.parse().unwrap())
        });
        Self(series.collect())
    }

    #[track_caller]
    fn check(&self, series: &str, expected: u64) {
        let found = self.0.get(series).unwrap_or_else(|| panic!("{series} is not in {:#?}", self.0));
        assert_eq!(*found, expected as f64, "{series}");
    }

    /// Each metric's labels, those of a histogram as one.
    fn labels_by_name(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut metrics = BTreeMap::<String, BTreeSet<String>>::new();
        for series in self.0.keys() {
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
            let labels = labels.split("\",").filter_map(|label| label.split_once('=')).map(|(label, _)| label);
            let labels = labels.filter(|label| *label != "le").map(str::to_owned);
            metrics.entry(of_histogram.unwrap_or(name).to_owned()).or_default().extend(labels);
        }
        metrics
    }
}

/// The README's table: each metric's labels.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let section = readme.split("\n## ").find(|section| section.starts_with("The service's metrics")).unwrap();
    let words = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.trim_end().trim_end_matches('`').to_owned();
        Some((name, words(cells.next()?).into_iter().collect()))
    };
    // The second table, of alerts, has no labels.
    let table = section.split("| alert |").next().unwrap();
    table.lines().filter_map(row).collect()
}

async fn status(client: &Client, checks: serde_json::Value) -> u16 {
    client.check(&json!({ "checks": checks })).await.unwrap().status
}

/// Traffic of each kind.
async fn traffic(service: &Service) {
    let client = Client::new(service.port()).unwrap();
    for expected in [200, 200, 429] {
        assert_eq!(client.take("two", "alice", 1).await.unwrap().status, expected);
    }
    assert_eq!(client.take("two", "bob", 51).await.unwrap().status, 429);
    for expected in [200, 429, 429, 429] {
        assert_eq!(client.take("banned", "carol", 1).await.unwrap().status, expected);
    }
    // In one call: an enforced one, allowed, and two in shadow, of which one would be denied.
    let shadow = |key: &str| json!({ "policy": "two", "key": key, "shadow": true });
    let checks = json!([{ "policy": "two", "key": "dave" }, shadow("dave"), shadow("alice")]);
    assert_eq!(status(&client, checks).await, 200);
    // The same check twice in a call is answered twice.
    let twice = json!({ "policy": "two", "key": "erin" });
    assert_eq!(status(&client, json!([twice, twice])).await, 200);
    assert_eq!(client.take("nobody-knows", "x", 1).await.unwrap().status, 404);
    assert_eq!(client.get("/no/such/path").await.unwrap().status, 404);
    assert_eq!(client.get("/v1/check").await.unwrap().status, 405);
    let lease = json!({ "policy": "idle", "key": "frank", "max": 5, "for_ms": 1000 });
    assert_eq!(client.post("/v1/lease", &lease).await.unwrap().json()["granted"], 1);
}

#[tokio::test]
async fn the_metrics_count_what_was_answered() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    traffic(&service).await;
    let scrape = Scrape::of(&service).await;
    for (policy, verdict, checks) in [
        // alice 2, dave 1, erin 2; alice's third; bob.
        ("two", "allowed", 5),
        ("two", "over_limit", 1),
        ("two", "never", 1),
        ("banned", "allowed", 1),
        // The second denial is the one with which the ban strikes.
        ("banned", "over_limit", 1),
        ("banned", "banned", 2),
        ("idle", "allowed", 0),
    ] {
        scrape.check(&format!("sluicegate_checks_total{{policy=\"{policy}\",verdict=\"{verdict}\"}}"), checks);
    }
    let decisions = |kind: &str, limit: &str, verdict: &str| {
        format!("sluicegate_{kind}_total{{policy=\"two\",limit=\"{limit}\",verdict=\"{verdict}\"}}")
    };
    scrape.check("sluicegate_lease_requests_total{policy=\"idle\",verdict=\"allowed\"}", 1);
    scrape.check("sluicegate_lease_tokens_total{policy=\"idle\"}", 1);
    scrape.check(&decisions("decisions", "burst", "over_limit"), 1);
    scrape.check(&decisions("decisions", "burst", "never"), 1);
    scrape.check(&decisions("decisions", "day", "never"), 1);
    scrape.check(&decisions("decisions", "day", "allowed"), 6);
    scrape.check(&decisions("shadow_decisions", "burst", "allowed"), 1);
    scrape.check(&decisions("shadow_decisions", "burst", "over_limit"), 1);
    for stage in ["queue", "store", "total"] {
        scrape.check(&format!("sluicegate_stage_duration_seconds_count{{stage=\"{stage}\"}}"), 11);
    }
    for (path, status, requests) in
        [("/v1/check", 200, 5), ("/v1/check", 429, 5), ("/v1/check", 404, 1), ("other", 404, 1)]
    {
        let labels = format!("listener=\"data\",path=\"{path}\",status=\"{status}\"");
        scrape.check(&format!("sluicegate_http_requests_total{{{labels}}}"), requests);
    }
    let server = redis.url().trim_start_matches("redis://").trim_end_matches('/').to_owned();
    scrape.check(&format!("sluicegate_store_server_up{{server=\"{server}\"}}"), 1);
    scrape.check(&format!("sluicegate_store_connections{{server=\"{server}\",state=\"up\"}}"), 2);
    scrape.check("sluicegate_store_in_flight", 0);
}

/// Both ways: nothing that isn't in the table, nothing in it that isn't there.
#[tokio::test]
async fn the_readme_lists_the_metrics_with_their_labels() {
    let redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    traffic(&service).await;
    let found = Scrape::of(&service).await.labels_by_name();
    assert_eq!(found, documented(), "left is what /metrics has, right the README's table");
}

#[tokio::test]
async fn a_check_without_a_decision_is_counted_as_failed() {
    let mut redis = Redis::start().await.unwrap();
    let service = Service::start(SERVICE, &redis.url()).await.unwrap();
    let server = redis.url().trim_start_matches("redis://").trim_end_matches('/').to_owned();
    redis.kill();
    let client = Client::new(service.port()).unwrap();
    let ready = async || (client.get("/readyz").await.unwrap().status == 503).then_some(());
    sluicegate_tests::until("the service to be unready", std::time::Duration::from_secs(10), ready).await.unwrap();
    for _ in 0..3 {
        assert_eq!(client.take("two", "alice", 1).await.unwrap().status, 503);
    }
    let scrape = Scrape::of(&service).await;
    scrape.check("sluicegate_checks_total{policy=\"two\",verdict=\"failed\"}", 3);
    for limit in ["burst", "day"] {
        let series = format!("sluicegate_decisions_total{{policy=\"two\",limit=\"{limit}\",verdict=\"failed\"}}");
        scrape.check(&series, 3);
    }
    scrape.check(&format!("sluicegate_store_server_up{{server=\"{server}\"}}"), 0);
    scrape.check("sluicegate_store_failures_total{reason=\"unavailable\"}", 3);
}
