//! Who may ask, seen from outside.

mod service;

use std::fs;

use service::{Http1, Service, until};

/// The status and challenge of an answer to this path with this token.
async fn ask(address: std::net::SocketAddr, path: &str, token: Option<&str>) -> (String, Option<String>) {
    let line = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let (head, body) = Http1::connect(address).await.get_with(path, &line).await;
    assert!(head.contains("x-sluicegate: "), "{head}");
    let status = head.split(' ').nth(1).unwrap().to_owned();
    if status == "401" {
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        assert!(body.contains("\"detail\":\"th"), "{body}");
    }
    let challenge = head.lines().find_map(|line| line.strip_prefix("www-authenticate: "));
    (status, challenge.map(str::to_owned))
}

#[tokio::test]
async fn without_the_token_only_health_is_answered() {
    let service = Service::configured(
        "token: data-token\nadmin: { listen: 127.0.0.1:0, token: admin-token, metrics_token: metrics-token }",
    );
    let challenge = |challenge: &str| ("401".to_owned(), Some(challenge.to_owned()));
    let (nothing, wrong) = (challenge("bearer"), challenge("bearer error=\"invalid_token\""));
    for (address, path, token) in [
        (service.data, "/v1/check", "data-token"),
        (service.data, "/nowhere", "data-token"),
        (service.admin, "/nowhere", "admin-token"),
        (service.admin, "/metrics", "metrics-token"),
    ] {
        assert_eq!(ask(address, "/healthz", None).await, ("200".to_owned(), None));
        assert_eq!(ask(address, "/readyz", None).await, ("503".to_owned(), None));
        assert_eq!(ask(address, path, None).await, nothing, "{path}");
        assert_eq!(ask(address, path, Some("other-token")).await, wrong, "{path}");
        let (status, _) = ask(address, path, Some(token)).await;
        assert!(["405", "404", "200"].contains(&&*status), "{path}: {status}");
    }
    assert_eq!(ask(service.admin, "/nowhere", Some("data-token")).await, wrong);
    assert_eq!(ask(service.data, "/nowhere", Some("admin-token")).await, wrong);
}

#[tokio::test]
async fn tokens_are_replaced_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    fs::write(&file, "old\n").unwrap();
    let service = Service::configured(&format!("token_file: {}", file.display()));
    let status = async |token| ask(service.data, "/v1/check", Some(token)).await.0;
    assert_eq!((status("old").await, status("new").await), ("405".to_owned(), "401".to_owned()));

    fs::write(&file, "new\nold\n").unwrap();
    until("both are taken", async || (status("new").await == "405").then_some(())).await;
    assert_eq!(status("old").await, "405");

    // A file that is of no use changes nothing.
    fs::write(&file, "").unwrap();
    let warning = service.logged("files changed, but can't be used: those from before stay");
    assert_eq!(warning["what"], "token_file");
    assert_eq!(status("old").await, "405");

    fs::write(&file, "new\n").unwrap();
    until("the old one is refused", async || (status("old").await == "401").then_some(())).await;
    assert_eq!(status("new").await, "405");
}
