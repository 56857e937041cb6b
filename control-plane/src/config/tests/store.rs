//! The store's fields, apart and together.

use std::fs;

use sluicegate_lua::KeyPrefix;

use super::{store_files::Files, *};

pub(super) const UNSUPPORTED: &str = "store.url: this kind of store is not supported; use redis://HOST:PORT, rediss://HOST:PORT for TLS, \
     redis+sentinel://HOST,HOST/MASTER, redis+cluster://HOST,HOST, unix:///absolute/path or memory://";

pub(super) fn store(fields: &str) -> Store {
    parse(&format!("store: {{ {fields} }}\n{POLICIES}")).unwrap_or_else(|errors| panic!("{fields}: {errors}")).store
}

/// Asserts that a login is that of this user with this password.
pub(super) fn check_login(login: Option<&Login>, user: Option<&str>, password: &str) {
    let login = login.expect("a login");
    assert_eq!((login.username.as_deref(), login.password.read().unwrap().expose()), (user, password));
}

#[test]
fn all_that_can_be_left_out_has_a_default() {
    let store = store("url: redis://h");
    assert_eq!(store.topology, Topology::Server(HostPort { host: "h".to_owned(), port: 6379 }));
    assert_eq!((store.database, store.timeout), (0, Duration::from_millis(20)));
    assert_eq!((store.connections.get(), store.max_in_flight.get()), (2, 10_000));
    assert_eq!(store.prefix, KeyPrefix::default());
    assert!(store.login.is_none() && store.sentinel_login.is_none() && store.tls.is_none());
}

#[test]
fn every_field_is_read() {
    let files = Files::new();
    let store = store(&files.name(
        "url: 'rediss+sentinel://s1,s2:1/m/3', timeout: 1.5s, prefix: staging.1, connections: 64, max_in_flight: 1,
        username: sluicegate, password: '${PASSWORD}', sentinel: { username: watch, password_file: $/password },
        tls: { ca_file: $/ca.pem, cert_file: $/client.pem, key_file: $/client.key }",
    ));
    assert_eq!(store.to_string(), "rediss+sentinel://s1:26379,s2:1/m/3");
    assert_eq!((store.database, store.timeout), (3, Duration::from_millis(1500)));
    assert_eq!((store.connections.get(), store.max_in_flight.get()), (64, 1));
    assert_eq!(store.prefix, KeyPrefix::new("staging.1".parse().unwrap()));
    check_login(store.login.as_ref(), Some("sluicegate"), "hunter2");
    check_login(store.sentinel_login.as_ref(), Some("watch"), "hunter2");
    let tls = store.tls.as_ref().unwrap();
    let text = |name| fs::read_to_string(files.path(name)).unwrap();
    assert_eq!(tls.ca_pem.as_ref(), Some(&text("ca.pem")));
    let identity = tls.identity.as_ref().unwrap();
    assert_eq!(
        (identity.certificate_pem.as_str(), identity.key_pem.expose()),
        (&*text("client.pem"), &*text("client.key"))
    );
    let shown = format!("{store} {store:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("PRIVATE KEY"), "{shown}");
}

#[test]
fn a_store_shows_where_it_is() {
    for (url, shown) in [
        ("redis://:hunter2@H:1/", "redis://h:1"),
        ("rediss://u:hunter2@[::1]/2", "rediss://[::1]:6379/2"),
        ("unix:/run/r.sock?db=2&pass=hunter2", "unix:///run/r.sock?db=2"),
        ("redis+sentinel://h1,h2:26380/master-name/2", "redis+sentinel://h1:26379,h2:26380/master-name/2"),
        ("redis+sentinel://h1/m", "redis+sentinel://h1:26379/m"),
        ("rediss+cluster://h1,h2", "rediss+cluster://h1:6379,h2:6379"),
        ("memory://", "memory://"),
    ] {
        assert_eq!(store(&format!("url: '{url}'")).to_string(), shown);
    }
}

#[test]
fn a_login_may_be_in_two_places() {
    for (fields, (user, password)) in [
        ("url: redis://u:hunter2@h", (Some("u"), "hunter2")),
        ("url: redis://u@h, password: p", (Some("u"), "p")),
        ("url: 'redis://:p@h', username: u", (Some("u"), "p")),
        ("url: redis://h, password: '${PASSWORD}'", (None, "hunter2")),
        ("url: unix:/s?user=u, password: p", (Some("u"), "p")),
        // Not the sentinels' own.
        ("url: redis+sentinel://u:p@h/m", (Some("u"), "p")),
    ] {
        let store = store(fields);
        check_login(store.login.as_ref(), user, password);
        assert!(store.sentinel_login.is_none());
    }
    let store = store("url: redis+sentinel://h/m, sentinel: { password: p }");
    assert!(store.login.is_none());
    check_login(store.sentinel_login.as_ref(), None, "p");
}

#[test]
fn logins_are_checked() {
    let alone = "a user name alone is no login; add store.password or store.password_file";
    check_settings("store: { url: ^redis://u@h }", &format!("store.url: {alone}"));
    check_settings("store: { url: redis://h, username: ^u }", &format!("store.username: {alone}"));
    check_settings(
        "store: { url: redis+sentinel://h/m, sentinel: { username: ^u } }",
        "store.sentinel.username: a user name alone is no login; add store.sentinel.password or \
         store.sentinel.password_file",
    );
    check_settings(
        "store: { url: redis://u:p@h, username: ^u }",
        "store.username: there is a user name in store.url too; keep one of them",
    );
    check_settings(
        "store: { url: 'redis://:p@h', password: ^p }",
        "store.password: there is a password in store.url too; keep one of them",
    );
    check_settings(
        "store: { url: 'redis://:p@h', password_file: ^/nowhere }",
        "store.password_file: there is a password in store.url too; keep one of them",
    );
    check_settings(
        "store: { url: redis://h, password: p, password_file: ^/nowhere }",
        "store.password_file: there is a password in store.password too; keep one of them",
    );
    check_settings(
        "store: { url: redis+sentinel://h/m, sentinel: { password: p, password_file: ^/nowhere } }",
        "store.sentinel.password_file: there is a password in store.sentinel.password too; keep one of them",
    );
    check_settings(
        "store: { url: redis://h, password: ^'${BLANK}' }",
        "store.password: is empty; give it a value or leave it out",
    );
    check_settings(
        "store: { url: ^'redis://u:@h' }",
        "store.url: has an empty password before the @; write USER:PASSWORD@ or :PASSWORD@, or leave it out and its @ \
         with it",
    );
    for field in ["username", "password", "password_file"] {
        check_settings(
            &format!("store: {{ url: memory://, {field}: ^x }}"),
            &format!("store.{field}: memory:// has no login; leave it out"),
        );
    }
}

#[test]
fn sentinels_have_a_login_where_there_are_sentinels() {
    check_settings(
        "store: { url: redis://h, sentinel: ^{ password: p } }",
        "store.sentinel: is the login of sentinels, and store.url names none; leave it out, or use \
         redis+sentinel://HOST,HOST/MASTER",
    );
    check_settings(
        "store: { url: redis+sentinel://h/m, sentinel: { ^pass: p } }",
        "store.sentinel.pass: there is no such field here; there are: username, password, password_file",
    );
}

#[test]
fn tls_has_settings_where_there_is_tls() {
    for url in ["rediss://h", "rediss+sentinel://h/m", "rediss+cluster://h"] {
        assert!(store(&format!("url: {url}")).tls.is_some_and(|tls| tls.ca_pem.is_none() && tls.identity.is_none()));
        assert!(store(&format!("url: {url}, tls: {{}}")).tls.is_some());
    }
    for url in ["redis://h", "unix:/s", "memory://", "redis+cluster://h"] {
        check_settings(
            &format!("store: {{ url: '{url}', tls: ^{{ ca_file: /nowhere }} }}"),
            "store.tls: store.url has no TLS; leave this out, or use rediss://, rediss+sentinel:// or rediss+cluster://",
        );
    }
    check_settings(
        "store: { url: rediss://h, tls: { ^ca: x } }",
        "store.tls.ca: there is no such field here; there are: ca_file, cert_file, key_file",
    );
}

#[test]
fn values_are_checked() {
    check_settings("store: { url: ^'http://host' }", UNSUPPORTED);
    check_settings(
        "store: { url: ^'valkeys://host' }",
        "store.url: this kind of store goes by another name here; write rediss:// for it",
    );
    check_settings(
        "store: { url: ^'redis+cluster://h1,,h2' }",
        "store.url: host 2 is empty; write its name or IP address, or take out the comma",
    );
    check_settings("store: { url: ^'redis+sentinel://h,h/m' }", "store.url: host 2 is host 1 again; keep one of them");
    check_settings(
        "store: { url: redis://host, timeout: ^0ms }",
        "store.timeout: is no time at all; use 20ms or what the store needs",
    );
    check_settings(
        "store: { url: redis://host, prefix: ^'a{b' }",
        "store.prefix: \"a{b\" is not a name: use 1 to 64 of A-Z a-z 0-9 _ . -",
    );
    for (field, most) in [("connections", 64), ("max_in_flight", 1_000_000)] {
        for bad in [0, most + 1] {
            check_settings(
                &format!("store: {{ url: redis://host, {field}: ^{bad} }}"),
                &format!("store.{field}: must be from 1 to {most}"),
            );
        }
        for bad in ["-1", "2.5", "many", "99999999999"] {
            check_settings(
                &format!("store: {{ url: redis://host, {field}: ^{bad} }}"),
                &format!("store.{field}: must be a whole number of at least 1"),
            );
        }
    }
    check_settings(
        "store: { url: redis://host, ^pasword: x }",
        "store.pasword: there is no such field here (did you mean password?); there are: url, timeout, prefix, username, password, password_file, \
         sentinel, tls, connections, max_in_flight",
    );
}

#[test]
fn all_faults_are_told_at_once() {
    check(
        &format!(
            "store:
  url: ^redis://h1,h2
  timeout: ^0s
  prefix: ^''
  username: u
  password: a
  password_file: ^/nowhere
  sentinel: {{ password: ^'${{GONE}}' }}
  tls: {{ ca_file: ^here, cert_file: ^/nowhere }}
  connections: ^0
  max_in_flight: ^0
{POLICIES}"
        ),
        &[
            "store.url: one server has one host; use redis+cluster://HOST,HOST or redis+sentinel://HOST,HOST/MASTER",
            "store.timeout: is no time at all; use 20ms or what the store needs",
            "store.prefix: \"\" is not a name: use 1 to 64 of A-Z a-z 0-9 _ . -",
            "store.password_file: there is a password in store.password too; keep one of them",
            "store.sentinel.password: the environment variable GONE is not set (or is not Unicode); set it",
            "store.tls.ca_file: is not an absolute path; write the file's path from / on",
            "store.tls.cert_file: is nothing without its private key; add store.tls.key_file",
            "store.connections: must be from 1 to 64",
            "store.max_in_flight: must be from 1 to 1000000",
        ],
    );
    // The URL's fault hides that the user name may be alone.
    check_settings("store: { url: ^'redis://:p@', username: u }", "store.url: names no host; use redis://HOST:PORT");
}

#[test]
fn no_message_shows_a_secret() {
    let files = Files::new();
    for fields in [
        "url: 'redis://:${PASSWORD}@'",
        "url: 'redis://:hunter2@host/x'",
        "url: 'http://:${PASSWORD}@host'",
        "url: [ 'redis://:hunter2@host' ]",
        "url: { hunter2: 1 }",
        "url: 'redis://:hunter2'",
        "url: 'redis://hunter2:'",
        "url: 'redis://:hun%ter2/hunter2@host'",
        "url: 'redis+cluster://u:hunter2@h,h'",
        "url: 'redis+sentinel://u:hunter2@h'",
        "url: 'valkey://u:hunter2@h'",
        "url: 'unix:/s?pass=hunter2&pass=hunter2'",
        "url: 'redis://:hunter2@h', password: hunter2",
        "url: 'redis://hunter2@h'",
        "url: redis://h, password: [ hunter2 ]",
        "url: redis://h, password: hunter2, password_file: hunter2",
        "url: redis://h, password_file: '${PASSWORD}'",
        "url: redis://h, password_file: '/${PASSWORD}'",
        "url: redis://h, password_file: $/bytes",
        "url: redis://h, password_file: $/blank",
        "url: redis://h, username: hunter2",
        "url: redis://h, sentinel: { password: hunter2 }",
        "url: redis+sentinel://h/m, sentinel: { password: hunter2, password_file: $/password }",
        "url: redis+sentinel://h/m, sentinel: hunter2",
        "url: rediss://h, password: hunter2, connections: 0",
        "url: rediss://h, tls: { ca_file: $/broken.pem }",
        "url: rediss://h, tls: { ca_file: $/fake.pem }",
        "url: rediss://h, tls: { ca_file: $/bytes }",
        "url: rediss://h, tls: { cert_file: $/client.pem, key_file: $/broken.key }",
        "url: rediss://h, tls: { cert_file: $/client.pem, key_file: $/fake.key }",
        "url: rediss://h, tls: { cert_file: $/client.pem, key_file: $/password }",
    ] {
        let fields = files.name(fields);
        let errors = parse(&format!("store: {{ {fields} }}\n{POLICIES}")).unwrap_err();
        assert!(!format!("{errors} {errors:?}").contains("hunter2"), "{errors}");
    }
}
