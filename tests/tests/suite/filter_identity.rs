//! Who a client is, by what a real Envoy found out: its address behind other proxies, its certificate, its token.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Sha256;
use sluicegate_tests::{Certificates, Client, Envoy, Overlay, Redis, Service, Upstream, connect_tls, exchange_over};

use crate::verdict::assert_counted;

/// Refills once a day.
const SERVICE: &str = "
store: { url: redis://127.0.0.1:6379, timeout: 20s }
policies:
  ten: { limits: [{ name: day, capacity: 10, refill: 10, per: 1d, interval: true }] }
  gold: { limits: [{ name: day, capacity: 50, refill: 50, per: 1d, interval: true }] }
";

fn plugin(limits: &Value) -> Value {
    json!({
        "service": { "cluster": "sluicegate", "authority": "sluicegate", "timeout": "20s" },
        "rules": [{ "name": "all", "limits": limits, "on_failure": "closed" }],
    })
}

/// The parts of each test, dropped in this order.
struct Parts {
    envoy: Envoy,
    service: Service,
    _upstream: Upstream,
    _redis: Redis,
}

impl Parts {
    async fn start(limits: &Value, overlay: impl FnOnce(Overlay) -> Overlay) -> Self {
        let redis = Redis::start().await.unwrap();
        let service = Service::start(SERVICE, &redis.url()).await.unwrap();
        let upstream = Upstream::start().await.unwrap();
        let plain = Overlay::new(service.port(), upstream.port()).plugin(&plugin(limits));
        let envoy = Envoy::start(&overlay(plain)).await.unwrap();
        Self { envoy, service, _upstream: upstream, _redis: redis }
    }

    /// What a subject has taken.
    async fn taken(&self, policy: &str, subject: &str) -> u64 {
        let looked = Client::new(self.service.port()).unwrap().take(policy, subject, 0).await.unwrap().json();
        let number = |field: &str| looked["results"][0][field].as_u64().unwrap();
        number("capacity") - number("remaining")
    }
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_is_who_that_proxy_says() {
    let limits = json!([{ "policy": "ten", "key": ["client_ip"] }]);
    let parts = Parts::start(&limits, |overlay| overlay.manager(json!({ "xff_num_trusted_hops": 1 }))).await;
    let client = Client::new(parts.envoy.port()).unwrap();
    let ask = async |forwarded: &[&str]| {
        let headers: Vec<_> = forwarded.iter().map(|value| ("x-forwarded-for", *value)).collect();
        client.send(Method::GET, "/", &headers).await.unwrap()
    };
    for (subject, forwarded) in [
        // What the client itself wrote in front, in one line or in two, counts for nothing.
        ("198.51.100.7", vec![&["198.51.100.7"][..], &["203.0.113.1, 198.51.100.7"], &["203.0.113.2", "198.51.100.7"]]),
        ("198.51.100.8", vec![&["198.51.100.8"], &["198.51.100.7,198.51.100.8"], &["::ffff:198.51.100.8"]]),
        ("2001:db8::/64", vec![&["2001:db8::1"], &["2001:db8::ffff:2"], &["198.51.100.7, 2001:DB8:0::3"]]),
        ("2001:db8:0:1::/64", vec![&["2001:db8:0:1::1"]]),
        // Whom it says nothing of is the peer of the connection.
        ("127.0.0.1", vec![&[], &["unknown"], &[""], &["198.51.100.7, "]]),
    ] {
        for forwarded in &forwarded {
            assert_counted(&ask(forwarded).await);
        }
        assert_eq!(parts.taken("ten", subject).await, forwarded.len() as u64, "{subject}");
    }
    // Ten in all, however many clients it pretends to be.
    let mut passed = 0;
    for spoofed in 0..20 {
        passed += u32::from(ask(&[&format!("203.0.113.{spoofed}, 198.51.100.7")]).await.status == 200);
    }
    assert_eq!(passed, 7);
}

#[tokio::test]
async fn without_trusted_proxies_a_client_is_its_connection() {
    let parts = Parts::start(&json!([{ "policy": "ten", "key": ["client_ip"] }]), |overlay| overlay).await;
    let client = Client::new(parts.envoy.port()).unwrap();
    let mut passed = 0;
    for spoofed in 0..20 {
        let forwarded = format!("203.0.113.{spoofed}");
        let headers =
            [("x-forwarded-for", forwarded.as_str()), ("x-real-ip", &forwarded), ("forwarded", "for=9.9.9.9")];
        passed += u32::from(client.send(Method::GET, "/", &headers).await.unwrap().status == 200);
    }
    assert_eq!((passed, parts.taken("ten", "127.0.0.1").await), (10, 10));
}

#[tokio::test]
async fn a_certificate_says_who_its_client_is() {
    let limit = |part: &str| json!({ "policy": "ten", "key": [{ "mtls": part }] });
    let limits: Value = ["uri_san", "dns_san", "subject", "sha256"].iter().map(|part| limit(part)).collect();
    let certificates = Certificates::generate().unwrap();
    let (certificate, key) = certificates.server();
    let tls = json!({
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {
            "tls_certificates": [{ "certificate_chain": { "filename": certificate }, "private_key": { "filename": key } }],
            "validation_context": { "trusted_ca": { "filename": certificates.authority() } },
        },
    });
    let socket = json!({ "transport_socket": { "name": "envoy.transport_sockets.tls", "typed_config": tls } });
    let parts = Parts::start(&limits, |overlay| overlay.filter_chain(socket)).await;
    let ask = async |as_client: bool| {
        let stream = connect_tls(parts.envoy.port(), &certificates, as_client).await.unwrap();
        let answer = exchange_over(stream, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\r\nratelimit: "), "{answer}");
    };
    ask(true).await;
    ask(true).await;
    // Whoever has none shares a bucket that no certificate names.
    ask(false).await;
    let sha256 = certificates.client_sha256().unwrap();
    for subject in ["spiffe://test/client", "client.test", "CN=client", &sha256] {
        assert_eq!(parts.taken("ten", subject).await, 2, "{subject}");
    }
}

const SECRET: &[u8] = b"a secret that the issuer and the proxy share";

/// A token signed with HS256 (RFC 7515).
fn token(claims: &Value, secret: &[u8]) -> String {
    let encoded = [json!({ "alg": "HS256", "typ": "JWT" }).to_string(), claims.to_string()];
    let signed = encoded.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
}

#[tokio::test]
async fn a_verified_token_says_who_its_bearer_is() {
    let key = json!({ "keys": [{ "kty": "oct", "alg": "HS256", "k": URL_SAFE_NO_PAD.encode(SECRET) }] });
    let jwt_authn = json!({
        "name": "envoy.filters.http.jwt_authn",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication",
            "providers": { "issuer": {
                "issuer": "https://issuer.test",
                "local_jwks": { "inline_string": key.to_string() },
                "payload_in_metadata": "payload",
            } },
            "rules": [{ "match": { "prefix": "/" }, "requires": { "provider_name": "issuer" } }],
        },
    });
    let limits = json!([
        {
            "policy": { "from": { "jwt": { "claim": "plan" } }, "map": { "gold": "gold" }, "default": "ten" },
            "key": [{ "jwt": { "claim": "sub" } }],
        },
        { "policy": "ten", "key": [{ "jwt": { "claim": "account", "provider": "payload" }, "missing": "skip" }] },
        { "policy": "ten", "key": [{ "jwt": { "claim": ["org", "id"] }, "missing": "skip" }] },
        { "policy": "ten", "key": [{ "jwt": { "claim": "admin" }, "missing": "skip" }] },
    ]);
    let parts = Parts::start(&limits, |overlay| overlay.filter_before(jwt_authn)).await;
    let client = Client::new(parts.envoy.port()).unwrap();
    let ask = async |claims: Value, secret: &[u8]| {
        let mut claims = claims;
        claims["iss"] = "https://issuer.test".into();
        let bearer = format!("Bearer {}", token(&claims, secret));
        client.send(Method::GET, "/", &[("authorization", &bearer)]).await.unwrap()
    };
    let claims = json!({ "sub": "alice", "plan": "gold", "account": 4200017, "org": { "id": 2.5 }, "admin": true });
    assert_counted(&ask(claims.clone(), SECRET).await);
    assert_counted(&ask(json!({ "sub": "12345678", "plan": "silver", "account": "4200017" }), SECRET).await);
    for (policy, subject, taken) in [
        ("gold", "alice", 1),
        // A text of 8 bytes is no double; a number and the text of its digits are the same account.
        ("ten", "12345678", 1),
        ("ten", "4200017", 2),
        ("ten", "2.5", 1),
        ("ten", "true", 1),
    ] {
        assert_eq!(parts.taken(policy, subject).await, taken, "{policy} {subject}");
    }
    let forged = ask(claims, b"another secret").await;
    assert_eq!((forged.status, forged.reason()), (401, None), "{forged:?}");
    assert_eq!(client.get("/").await.unwrap().status, 401);
    assert_eq!(parts.taken("gold", "alice").await, 1, "who is not let in is not counted");
}
