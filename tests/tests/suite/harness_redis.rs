//! Redis with TLS and with users.

use std::process::Command;

use sluicegate_tests::{Certificates, Redis, TlsRedis};

/// What `redis-cli` says to PING at the TLS port, with these arguments more.
fn ping(redis: &TlsRedis, authority: &Certificates, client: Option<&Certificates>) -> String {
    let mut command = Command::new("redis-cli");
    command.args(["-h", "127.0.0.1", "-p", &redis.port().to_string(), "--tls", "--cacert"]);
    command.arg(authority.authority());
    if let Some((certificate, key)) = client.map(Certificates::client) {
        command.arg("--cert").arg(certificate).arg("--key").arg(key);
    }
    let output = command.arg("PING").output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
async fn tls_needs_the_authority_and_a_certificate_by_it() {
    let redis = TlsRedis::start().await.unwrap();
    let (own, strange) = (redis.certificates(), Certificates::generate().unwrap());
    assert_eq!(ping(&redis, own, Some(own)), "PONG\n");
    for (case, authority, client) in
        [("no certificate", own, None), ("a strange one", own, Some(&strange)), ("not trusted", &strange, Some(own))]
    {
        let answer = ping(&redis, authority, client);
        assert!(!answer.contains("PONG"), "{case}: {answer}");
    }
    let mut connection = redis.connection().await.unwrap();
    redis::cmd("SET").arg(&["key", "value", "EX", "100"]).exec_async(&mut connection).await.unwrap();
}

#[tokio::test]
#[should_panic(expected = "a key never expires")]
async fn a_key_without_a_ttl_behind_tls_fails_the_test() {
    let redis = TlsRedis::start().await.unwrap();
    let mut connection = redis.connection().await.unwrap();
    redis::cmd("SET").arg("leak").arg(1).exec_async(&mut connection).await.unwrap();
}

#[tokio::test]
async fn users_are_let_in_by_name_and_password() {
    let redis =
        Redis::start_with_users(&["sluice on >secret ~allowed:* +get +set +ping", "off off >secret +@all"]).await;
    let redis = redis.unwrap();
    let run = async |url: String, words: &[&str]| -> Result<(), redis::RedisError> {
        let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        redis::cmd(words[0]).arg(&words[1..]).exec_async(&mut connection).await
    };
    let set = ["SET", "allowed:key", "value", "EX", "100"];
    run(redis.url_as("sluice", "secret"), &set).await.unwrap();
    for (url, words) in [
        (redis.url(), &set[..]),
        (redis.url_as("sluice", "wrong"), &set),
        (redis.url_as("off", "secret"), &set),
        (redis.url_as("sluice", "secret"), &["SET", "other", "value"]),
        (redis.url_as("sluice", "secret"), &["DEL", "allowed:key"]),
    ] {
        assert!(run(url.clone(), words).await.is_err(), "{url}: {words:?}");
    }
    assert_eq!(redis.assert_all_keys_expire(), 1);
}
