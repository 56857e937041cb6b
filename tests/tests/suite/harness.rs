//! What every test leans on can fail.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use sluicegate_tests::{Client, Envoy, Overlay, Port, Redis, Upstream};

use crate::verdict::{LONG, plugin};

#[tokio::test]
#[should_panic(expected = "leak never expires")]
async fn a_key_without_a_ttl_fails_the_test() {
    let redis = Redis::start().await.unwrap();
    let mut connection = redis.connection().await.unwrap();
    redis::cmd("SET").arg("leak").arg(1).exec_async(&mut connection).await.unwrap();
    drop(redis);
}

#[tokio::test]
#[should_panic(expected = "downstream_rq_idle_timeout is 1")]
async fn a_request_that_hung_fails_the_test() {
    let nobody = Port::lease().unwrap();
    // Accepts and never answers.
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let overlay = Overlay::new(nobody.number(), upstream.local_addr().unwrap().port()).plugin(&plugin(LONG));
    let envoy = Envoy::start(&overlay.manager(json!({ "stream_idle_timeout": "0.1s" }))).await.unwrap();
    assert_eq!(Client::new(envoy.port()).unwrap().get("/").await.unwrap().status, 504);
    drop(envoy);
}

/// A filter whose `proxy_on_request_headers` is nothing but a trap, as WebAssembly: types, functions, memory, exports,
/// code.
const TRAP: &[&[u8]] = &[
    b"\0asm\x01\0\0\0",
    b"\x01\x10\x03\x60\0\0\x60\x03\x7f\x7f\x7f\x01\x7f\x60\x01\x7f\x01\x7f",
    b"\x03\x04\x03\0\x01\x02",
    b"\x05\x03\x01\0\x01",
    b"\x07\x48\x04\x06memory\x02\0\x17proxy_abi_version_0_2_1\0\0\x18proxy_on_request_headers\0\x01\x06malloc\0\x02",
    b"\x0a\x0d\x03\x02\0\x0b\x03\0\0\x0b\x04\0\x41\0\x0b",
];

#[tokio::test]
#[should_panic(expected = "Function: proxy_on")]
async fn a_filter_that_trapped_fails_the_test() {
    let (nobody, upstream) = (Port::lease().unwrap(), Upstream::start().await.unwrap());
    let trap = json!({
        "name": "trap",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm",
            "config": { "name": "trap", "vm_config": {
                "runtime": "envoy.wasm.runtime.v8",
                "code": { "local": { "inline_bytes": STANDARD.encode(TRAP.concat()) } },
            } },
        },
    });
    let overlay = Overlay::new(nobody.number(), upstream.port()).plugin(&plugin(LONG));
    let envoy = Envoy::start(&overlay.filter_before(trap)).await.unwrap();
    assert_eq!(Client::new(envoy.port()).unwrap().get("/").await.unwrap().status, 503);
    drop(envoy);
}
