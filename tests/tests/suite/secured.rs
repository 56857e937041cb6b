//! The service behind TLS and a token, with Envoy in front.

use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Certificates, Client, Envoy, Overlay, Redis, Service, Upstream};

use crate::verdict::{LONG, SERVICE, assert_counted, plugin};

const TOKEN: &str = "a-token-of-the-test";

/// TLS to the service: whom to trust, and what to show.
fn tls(authority: &Path, (certificate, key): (PathBuf, PathBuf)) -> Value {
    json!({ "transport_socket": {
        "name": "tls",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
            "sni": "localhost",
            "common_tls_context": {
                "validation_context": {
                    "trusted_ca": { "filename": authority },
                    "match_typed_subject_alt_names": [{ "san_type": "DNS", "matcher": { "exact": "localhost" } }],
                },
                "tls_certificates":
                    [{ "certificate_chain": { "filename": certificate }, "private_key": { "filename": key } }],
            },
        },
    }})
}

#[tokio::test]
async fn envoy_reaches_the_service_over_tls_with_a_certificate_and_a_token() {
    let certificates = Certificates::generate().unwrap();
    let (certificate, key) = certificates.server();
    let config = format!(
        "{SERVICE}
token: {TOKEN}
tls: {{ cert_file: {}, key_file: {}, client_ca_file: {} }}
",
        certificate.display(),
        key.display(),
        certificates.authority().display()
    );
    let redis = Redis::start().await.unwrap();
    let service = Service::start_by_admin(&config, &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let overlay = |client| {
        let tls = tls(&certificates.authority(), client);
        Overlay::new(service.port(), upstream.port()).cluster("sluicegate", tls)
    };
    let mut rules = plugin(LONG);
    rules["service"]["headers"] = json!({ "authorization": format!("Bearer {TOKEN}") });
    let envoy = Envoy::start(&overlay(certificates.client()).plugin(&rules)).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    for _ in 0..5 {
        assert_counted(&client.get("/closed/x").await.unwrap());
    }
    assert!(!envoy.process().log().contains(TOKEN));

    // A wrong token is a fault of configuration, and told apart as one.
    rules["service"]["headers"] = json!({ "authorization": "Bearer another-token" });
    let envoy = Envoy::start(&overlay(certificates.client()).plugin(&rules)).await.unwrap();
    let client = Client::new(envoy.port()).unwrap();
    let answer = client.send(Method::GET, "/closed/x", &[]).await.unwrap();
    assert_eq!((answer.status, answer.reason()), (429, Some("failure_closed")), "{answer:?}");
    assert_eq!(envoy.metric(r#"sluicegate_callout_failures_total{kind="config"}"#).await.unwrap(), 1);

    // Nor is a stranger's certificate enough, or none.
    let stranger = Certificates::generate().unwrap();
    rules["service"]["headers"] = json!({ "authorization": format!("Bearer {TOKEN}") });
    let envoy = Envoy::start(&overlay(stranger.client()).plugin(&rules)).await.unwrap();
    let answer = Client::new(envoy.port()).unwrap().get("/closed/x").await.unwrap();
    assert_eq!((answer.status, answer.reason()), (429, Some("failure_closed")), "{answer:?}");
}
