//! A storm of requests that come to nothing makes no storm in the log.

mod service;

use service::{Http1, Service};
use tokio::net::TcpListener;

/// Requests of each kind.
const EACH: usize = 100;

#[tokio::test]
async fn a_storm_of_bad_requests_and_failures_logs_nothing_per_request() {
    let service = Service::start("0s");
    let mut client = Http1::connect(service.data).await;
    let check = r#"{"checks":[{"policy":"api","key":"k"}]}"#;
    for (body, status) in
        [("{", "400"), ("[]", "422"), (r#"{"checks":[{"policy":"nobody","key":"k"}]}"#, "404"), (check, "503")]
    {
        for _ in 0..EACH {
            let head = client.check("", body).await;
            assert!(head.starts_with(&format!("http/1.1 {status}")), "{head}");
        }
    }
    for _ in 0..EACH {
        let mut nonsense = Http1::connect(service.data).await;
        nonsense.write("NONSENSE\r\n\r\n").await;
        assert!(nonsense.answer().await.starts_with("http/1.1 400"));
        Http1::connect(service.admin).await.get("/no/such/path").await;
    }
    // What is said of the store that isn't there may come before or after the first request.
    let lines = service.logged_since();
    assert!(lines.len() <= 2, "{} lines: {lines:?}", lines.len());
}

/// The same when calls are shed: while one waits for a store that takes connections and never answers, others are too
/// many.
#[tokio::test]
async fn shed_calls_are_counted_and_not_logged() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = silent.local_addr().unwrap();
    let fields = format!("drain: 0s\nstore: {{ url: 'redis://{store}', timeout: 1s, max_in_flight: 1 }}");
    let service = Service::configured(&fields);
    let data = service.data;
    let asking = (0..4).map(|caller| {
        tokio::spawn(async move {
            let mut client = Http1::connect(data).await;
            for _ in 0..EACH / 4 {
                let body = format!(r#"{{"checks":[{{"policy":"api","key":"{caller}"}}]}}"#);
                let head = client.check("x-sluicegate-timeout-ms: 100\r\n", &body).await;
                assert!(head.starts_with("http/1.1 503"), "{head}");
            }
        })
    });
    for asked in asking.collect::<Vec<_>>() {
        asked.await.unwrap();
    }
    let mut admin = Http1::connect(service.admin).await;
    admin.write("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let (_, metrics) = admin.whole_answer().await;
    let shed =
        metrics.lines().find_map(|line| line.strip_prefix(r#"sluicegate_store_failures_total{reason="overloaded"} "#));
    assert!(shed.unwrap().parse::<usize>().unwrap() > EACH / 4, "{metrics}");
    let lines = service.logged_since();
    assert!(lines.len() <= 2, "{} lines: {lines:?}", lines.len());
}
