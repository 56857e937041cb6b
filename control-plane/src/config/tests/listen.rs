//! What the listeners ask of callers, show to them and bear of them.

use super::{POLICIES, STORE, check_settings, parse, store_files::Files};
use crate::config::Config;

fn good(fields: &str) -> Config {
    parse(&format!("{fields}\n{STORE}{POLICIES}")).unwrap_or_else(|errors| panic!("{errors}"))
}

#[test]
fn a_listener_asks_and_shows_nothing_unless_told_to() {
    let config = good("");
    assert!(config.token.is_none() && config.tls.is_none() && !config.reuse_port);
    assert!(config.admin.token.is_none() && config.admin.metrics_token.is_none() && config.admin.tls.is_none());
    assert_eq!(config.max_connections.get(), 10_000);
}

#[test]
fn tokens_are_a_text_or_the_lines_of_a_file() {
    let files = Files::new();
    let config =
        good(&files.name(
            "token: '${TOKEN}'\nadmin: { listen: '0.0.0.0:1', token_file: $/tokens, metrics_token_file: $/tokens }",
        ));
    let texts = |tokens: &crate::config::Tokens| {
        tokens.read().unwrap().iter().map(|token| token.expose().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&config.token.unwrap()), ["hunter2"]);
    assert_eq!(texts(&config.admin.token.unwrap()), ["hunter2", "hunter3"]);
    assert_eq!(texts(&config.admin.metrics_token.unwrap()), ["hunter2", "hunter3"]);
}

#[test]
fn faults_of_tokens_name_the_field_and_show_nothing() {
    let files = Files::new();
    let check = |marked: &str, expected: &str| check_settings(&files.name(marked), &files.name(expected));
    let visible = "a token travels in a header, so it is of visible ASCII characters, without blanks; make one with \
                   openssl rand -hex 32";
    check("token: ^hunter 2", &format!("token: {visible}"));
    check("admin: { metrics_token: ^hünter2 }", &format!("admin.metrics_token: {visible}"));
    check("token_file: ^'$/two words'", &format!("token_file: $/two words: line 2: {visible}"));
    check("token_file: ^'$/no tokens'", "token_file: $/no tokens: has no token; write each on a line of its own");
    check("token_file: ^hunter2", "token_file: is not an absolute path; write the file's path from / on");
    check(
        "admin: { token_file: ^$/gone }",
        "admin.token_file: $/gone: can't be read: No such file or directory (os error 2)",
    );
    check("token: hunter2\ntoken_file: ^$/tokens", "token_file: there is a token in token too; keep one of them");
    check(
        "admin: { metrics_token: hunter2, metrics_token_file: ^$/tokens }",
        "admin.metrics_token_file: there is a token in admin.metrics_token too; keep one of them",
    );
}

#[test]
fn certificates_of_listeners_are_checked() {
    let files = Files::new();
    let own = "cert_file: $/client.pem, key_file: $/client.key";
    let config =
        good(&files.name(&format!("tls: {{ {own} }}\nadmin: {{ tls: {{ {own}, client_ca_file: $/ca.pem }} }}")));
    assert_eq!(config.tls.unwrap().files().count(), 2);
    assert_eq!(config.admin.tls.unwrap().files().count(), 3);

    let check = |marked: &str, expected: &str| check_settings(&files.name(marked), &files.name(expected));
    check(
        "tls: { ^cert_file: $/client.pem }",
        "tls.key_file: is missing; add its private key, such as key_file: /etc/sluicegate/tls.key",
    );
    check(
        "tls: { cert_file: $/client.pem, key_file: ^$/other.key }",
        "tls.key_file: is not the key of the certificate in tls.cert_file; name two files that belong together",
    );
    check(
        "admin: { tls: { cert_file: ^$/client.key, key_file: $/client.key } }",
        "admin.tls.cert_file: $/client.key: has no certificate in PEM, which begins with -----BEGIN CERTIFICATE-----",
    );
    check(
        &format!("tls: {{ {own}, client_ca_file: ^$/broken.pem }}"),
        "tls.client_ca_file: $/broken.pem: its certificate 1 is not PEM; make the file anew",
    );
}

#[test]
fn bounds_of_listeners_are_checked() {
    assert_eq!(good("max_connections: 1").max_connections.get(), 1);
    check_settings("max_connections: ^0", "max_connections: must be from 1 to 1000000");
    assert!(good("reuse_port: true").reuse_port);
    assert!(!good("listen: unix:/run/s.sock\nreuse_port: false").reuse_port);
    check_settings(
        "listen: unix:/run/s.sock\nreuse_port: ^true",
        "reuse_port: unix:/run/s.sock is no port, and two processes can't share it; leave this out, or pass the sockets",
    );
}
