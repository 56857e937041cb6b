//! The load that the rows run under, and what must hold of it whatever the fault.

use std::time::{Duration, Instant};

use sluicegate_tests::{Ask, Client, Load, Samples, Service};

/// `store.timeout` of services under load.
pub(crate) const TIMEOUT: Duration = Duration::from_millis(100);
/// What load and service on two shared cores may add to a median, and to the worst of thousands.
const SLACK: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(250)];
/// How soon a store that is back must be in use again.
pub(crate) const BACK_WITHIN: Duration = Duration::from_secs(1);
/// Requests a second.
pub(crate) const RATE: u32 = 400;
/// Subjects that a load is spread over.
pub(crate) const SUBJECTS: u64 = 40;
/// The tokens of a subject of the policy `wide`: more than any load takes.
pub(crate) const WIDE: u64 = 1_000_000;

/// A service's configuration. Nothing refills before a row is over.
pub(crate) fn config(timeout: Duration) -> String {
    format!(
        "
store: {{ url: redis://127.0.0.1:6379, timeout: {}ms }}
policies:
  wide: {{ limits: [{{ name: day, capacity: {WIDE}, refill: {WIDE}, per: 1d, interval: true }}] }}
  two:
    limits:
      - {{ name: day, capacity: {WIDE}, refill: {WIDE}, per: 1d, interval: true }}
      - {{ name: week, capacity: {WIDE}, refill: {WIDE}, per: 7d, interval: true }}
  tight: {{ limits: [{{ name: day, capacity: 5000, refill: 5000, per: 1d, interval: true }}] }}
",
        timeout.as_millis()
    )
}

/// A service under load.
pub(crate) async fn service(store_url: &str) -> (Service, Client) {
    let service = Service::start(&config(TIMEOUT), store_url).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    (service, client)
}

/// Takes from the policy `wide`, subject after subject.
pub(crate) fn load(client: &Client) -> Load {
    Load::start(std::slice::from_ref(client), 16, RATE, |turn| Ask::take("wide", subject(turn % SUBJECTS), 1))
}

pub(crate) fn subject(number: u64) -> String {
    format!("user-{number}")
}

/// The tokens that subjects of `wide` have been charged.
pub(crate) async fn charged(client: &Client, subject: &str) -> u64 {
    let answer = client.take("wide", subject, 0).await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    WIDE - answer.json()["results"][0]["remaining"].as_u64().unwrap()
}

/// No answer came later than the deadline and what two busy cores add.
pub(crate) fn assert_in_time(samples: &Samples) {
    assert!(samples.median() <= TIMEOUT + SLACK[0], "median {:?}: {samples:?}", samples.median());
    assert!(samples.worst() <= TIMEOUT + SLACK[1], "worst {:?}: {samples:?}", samples.worst());
}

/// Every take that was allowed was charged, once; none that failed was charged twice.
pub(crate) async fn assert_charged_once(client: &Client, samples: &Samples) {
    for (subject, samples) in samples.by_subject() {
        let charged = charged(client, subject).await;
        let (allowed, failed) = (samples.allowed() as u64, samples.failed() as u64);
        assert!(
            (allowed..=allowed + failed).contains(&charged),
            "{subject}: {charged} charged for {allowed} allowed and {failed} failed"
        );
    }
}

/// How long after `since` the first decision came.
pub(crate) fn back_after(samples: &Samples, since: Instant) -> Duration {
    let first = samples.first_decided_after(since).unwrap_or_else(|| panic!("never back: {samples:?}"));
    first.ended_at() - since
}

/// The same, which must be soon.
pub(crate) fn assert_back_soon(samples: &Samples, since: Instant) -> Duration {
    let back_after = back_after(samples, since);
    assert!(back_after <= BACK_WITHIN, "back only after {back_after:?}");
    back_after
}
