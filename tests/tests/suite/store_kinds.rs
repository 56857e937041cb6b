//! Stores that want more than an address: a login, certificates, a socket; and what is said when they don't get it.

use std::{fs, time::Duration};

use sluicegate_tests::{Certificates, Client, Redis, Service, TlsRedis, until};

const POLICIES: &str =
    "policies: { two: { limits: [{ name: day, capacity: 2, refill: 2, per: 1d, interval: true }] } }";
/// What the service needs to be allowed; the README tells operators this.
const ACL: &str = "~sg:* +hello +select +evalsha +eval +script|load +time +get +set +pexpire +pttl +del +info";
const PASSWORD: &str = "hunter2-of-the-store";

fn config(store: &str) -> String {
    format!("store: {{ url: x, timeout: 5s, {store} }}\n{POLICIES}\n")
}

/// A service that decides.
async fn assert_decides(store: &str, url: &str) -> Service {
    let service = Service::start(&config(store), url).await.unwrap_or_else(|error| panic!("{url}: {error:#}"));
    let client = Client::new(service.port()).unwrap();
    for status in [200, 200, 429] {
        assert_eq!(client.take("two", url, 1).await.unwrap().status, status, "{url}");
    }
    service
}

/// A service that isn't ready, and says why, without the password.
async fn assert_says(store: &str, url: &str, why: &str) {
    let service = Service::start_unready(&config(store), url).await.unwrap();
    let client = Client::new(service.port()).unwrap();
    let mut said = String::new();
    let found = until("the reason", Duration::from_secs(10), async || {
        let answer = client.get("/readyz").await.unwrap();
        assert_eq!(answer.status, 503);
        said = String::from_utf8(answer.body).unwrap();
        said.contains(why).then_some(())
    });
    found.await.unwrap_or_else(|_| panic!("{url}: not {why:?} but {said}"));
    let log = service.log().unwrap();
    assert!(!said.contains(PASSWORD) && !log.contains(PASSWORD), "{said}\n{log}");
    assert_eq!(log.matches("store down").count(), 1, "one line a change: {log}");
}

#[tokio::test]
async fn users_with_the_rights_of_the_readme_are_enough() {
    let readme = fs::read_to_string(sluicegate_tests::repository("README.md")).unwrap();
    assert!(readme.contains(ACL), "the README's ACL is not the one that this tests");
    let redis = Redis::start_with_users(&[&format!("sluice on >{PASSWORD} {ACL}")]).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, format!("{PASSWORD}\n")).unwrap();
    let login = format!("username: sluice, password_file: {}", file.display());
    let service = assert_decides(&login, &redis.url()).await;
    assert!(!service.log().unwrap().contains(PASSWORD));
    drop(service);
    assert_says("username: sluice, password: hunter2-of-the-store-not", &redis.url(), "it does not accept the login")
        .await;
    assert_says("connections: 2", &redis.url(), "it wants a login").await;
}

#[tokio::test]
async fn a_login_that_is_taken_away_and_given_back_needs_no_restart() {
    let redis = Redis::start().await.unwrap();
    let service = assert_decides("connections: 1", &redis.url()).await;
    let client = Client::new(service.port()).unwrap();
    let ready = async |status| {
        let what = format!("readiness to be {status}");
        until(&what, Duration::from_secs(10), async || {
            (client.get("/readyz").await.unwrap().status == status).then_some(())
        })
        .await
        .unwrap();
    };
    let mut connection = redis.connection().await.unwrap();
    for (users, status) in [("resetpass >x", 503), ("nopass", 200)] {
        redis::cmd("ACL")
            .arg("SETUSER")
            .arg("default")
            .arg(users.split(' ').collect::<Vec<_>>())
            .exec_async(&mut connection)
            .await
            .unwrap();
        let mut kill = redis::cmd("CLIENT");
        kill.arg(&["KILL", "TYPE", "normal", "SKIPME", "yes"]).exec_async(&mut connection).await.unwrap();
        ready(status).await;
    }
    assert_eq!(client.take("two", "v", 1).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_password_file_that_changed_is_used_by_the_next_connection() {
    const NEW: &str = "hunter3-of-the-store";
    let redis = Redis::start_with_users(&[&format!("sluice on >{PASSWORD} {ACL}")]).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, PASSWORD).unwrap();
    let login = format!("username: sluice, password_file: {}", file.display());
    let service = assert_decides(&login, &redis.url()).await;
    let client = Client::new(service.port()).unwrap();

    fs::write(&file, NEW).unwrap();
    redis.node().run::<()>(&["ACL", "SETUSER", "sluice", "resetpass", &format!(">{NEW}")]).await.unwrap();
    redis.node().run::<()>(&["CLIENT", "KILL", "USER", "sluice"]).await.unwrap();
    until("decisions with the new password", Duration::from_secs(10), async || {
        (client.take("two", "v", 1).await.unwrap().status == 200).then_some(())
    })
    .await
    .unwrap();
    let log = service.log().unwrap();
    assert!(!log.contains(PASSWORD) && !log.contains(NEW), "{log}");
}

#[tokio::test]
async fn tls_with_certificates_of_both_sides() {
    let redis = TlsRedis::start().await.unwrap();
    let tls = |authority: &Certificates, client: Option<&Certificates>| {
        let mut fields = format!("ca_file: {}", authority.authority().display());
        if let Some((certificate, key)) = client.map(Certificates::client) {
            fields += &format!(", cert_file: {}, key_file: {}", certificate.display(), key.display());
        }
        format!("tls: {{ {fields} }}")
    };
    let (own, strange) = (redis.certificates(), Certificates::generate().unwrap());
    assert_decides(&tls(own, Some(own)), &redis.url()).await;
    assert_decides(&tls(own, Some(own)), &redis.url().replace("127.0.0.1", "localhost")).await;
    assert_says(&tls(&strange, Some(own)), &redis.url(), "from nobody who is trusted here").await;
    assert_says(&tls(own, None), &redis.url(), "TLS: ").await;
}

#[tokio::test]
async fn a_socket_and_a_database_of_ones_own() {
    let redis = Redis::start().await.unwrap();
    assert_decides("connections: 1", &format!("{}?db=3", redis.socket_url())).await;
    assert_eq!(redis.node().info("keyspace", "db3").await.unwrap().map(|keys| keys.starts_with("keys=")), Some(true));
}

/// What a server is shows in the log once it is connected, and a policy that drops buckets is warned about.
#[tokio::test]
async fn the_log_says_what_was_found() {
    let redis = Redis::start().await.unwrap();
    redis.node().run::<()>(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]).await.unwrap();
    let service = assert_decides("connections: 1", &redis.url()).await;
    let log = service.log().unwrap();
    for part in ["found", "mode=\"standalone\"", "role=\"master\"", "maxmemory_policy=\"allkeys-lru\"", "noeviction"] {
        assert!(log.contains(part), "{part} is missing in {log}");
    }
    assert!(log.contains(&redis.url()), "{log}");
}
