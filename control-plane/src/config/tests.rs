use std::time::Duration;

use sluicegate_lua::{Ban, Refill, Rule};

use super::*;

mod listen;
mod rate_limit_service;
mod store;
mod store_files;

const STORE: &str = "store: { url: redis://127.0.0.1:6379 }\n";
const POLICIES: &str = "policies: { api: { limits: [ { name: burst, capacity: 1, refill: 1, per: 1s } ] } }\n";

fn environment(name: &str) -> Option<String> {
    match name {
        "TOKEN" | "PASSWORD" => Some("hunter2".to_owned()),
        "BLANK" => Some(" ".to_owned()),
        _ => None,
    }
}

fn parse(yaml: &str) -> Result<Config, ConfigErrors> {
    Config::parse("f.yaml", yaml, &environment)
}

/// The faults of a file: `^` in it marks the place of each, in order, and is not part of it.
fn check(marked: &str, expected: &[&str]) {
    let message = parse(&marked.replace('^', "")).map_or_else(|errors| errors.to_string(), |_| "no error".to_owned());
    let mut places = Vec::new();
    for (line, text) in (1..).zip(marked.lines()) {
        // Marks before this one moved it, and columns count from 1.
        let columns = text.match_indices('^').enumerate().map(|(marks, (column, _))| column - marks + 1);
        places.extend(columns.map(|column| format!("f.yaml:{line}:{column}: ")));
    }
    assert_eq!(places.len(), expected.len(), "a mark for each fault");
    let expected: Vec<_> = places.into_iter().zip(expected).map(|(place, reason)| place + reason).collect();
    assert_eq!(message, expected.join("\n"), "\n{marked}");
}

/// The fault of a file with good policies and, unless `marked` has its own, a good store.
fn check_settings(marked: &str, expected: &str) {
    let store = if marked.contains("store") { "" } else { STORE };
    check(&format!("{marked}\n{store}{POLICIES}"), &[expected]);
}

/// The fault of a file whose policy `login` has this one limit.
fn check_limit(marked: &str, expected: &str) {
    check(&format!("{STORE}policies:\n  login:\n    limits:\n      - {marked}\n"), &[expected]);
}

#[test]
fn the_smallest_file_gets_the_defaults() {
    let config = parse(&format!("{STORE}{POLICIES}")).unwrap();
    assert_eq!(config.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.admin.listen.to_string(), "127.0.0.1:8081");
    assert!(config.admin.token.is_none());
    assert_eq!(config.store.to_string(), "redis://127.0.0.1:6379");
    assert_eq!(config.drain, Duration::from_secs(5));
    assert_eq!(config.policies.len(), 1);
}

#[test]
fn every_field_is_read() {
    let config = parse(
        "listen: unix:/run/sluicegate.sock
admin: { listen: '0.0.0.0:0', token: '${TOKEN}' }
store: { url: 'redis://:${PASSWORD}@host:7000/2' }
drain: 0s
policies:
  login:
    limits:
      - { name: burst, capacity: 5, refill: 10, per: 2m }
      - { name: daily, capacity: 100, refill: 100, per: 1d, interval: true }
",
    )
    .unwrap();
    assert_eq!(config.listen.to_string(), "unix:/run/sluicegate.sock");
    assert_eq!(config.admin.listen.to_string(), "0.0.0.0:0");
    assert_eq!(config.admin.token.as_ref().unwrap().read().unwrap()[0].expose(), "hunter2");
    assert_eq!(config.store.to_string(), "redis://host:7000/2");
    assert_eq!(config.drain, Duration::ZERO);
    let login = config.policies.get("login").unwrap();
    assert_eq!(login.name().as_str(), "login");
    let numbers: Vec<_> = login
        .limits()
        .iter()
        .map(|limit| match &limit.rule {
            Rule::Bucket(bucket) => (limit.name.as_str(), bucket.capacity(), bucket.fill_ms(), bucket.mode()),
            Rule::Quota(quota) => panic!("{quota:?}"),
        })
        .collect();
    assert_eq!(numbers, [("burst", 5, 60_000, Refill::Greedy), ("daily", 100, 86_400_000, Refill::Interval)]);
    assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
}

#[test]
fn a_file_with_nothing_to_do_is_refused() {
    let empty = ["the file is empty; it needs at least store.url and policies"];
    check("^", &empty);
    check("# nothing\n^", &empty);
    check("^- a\n", &["must have fields of its own"]);
    check(
        &format!("^{STORE}"),
        &[
            "policies: is missing; add policies: { api: { limits: [ { name: burst, capacity: 10, refill: 10, per: 1s } ] } }",
        ],
    );
    check(&format!("{STORE}policies: ^{{}}"), &["policies: is empty; add a policy, or there is nothing to limit"]);
    check(&format!("{STORE}policies^:\n"), &["policies: must have fields of its own"]);
    check(
        &format!("{STORE}policies: {{ api: {{ limits: ^[] }} }}"),
        &["policies.api.limits: a policy has at least one limit"],
    );
    check(&format!("^{POLICIES}"), &["store: is missing; add store: { url: redis://127.0.0.1:6379 }"]);
    check_settings("store: { ^timeout: 1s }", "store.url: is missing; add url: redis://127.0.0.1:6379");
}

#[test]
fn faults_of_form_name_the_place_and_the_field() {
    let top = "there are: listen, token, token_file, tls, max_connections, reuse_port, admin, \
               store, drain, key_pepper, refunds, rate_limit_service, policies";
    check_settings("^lisen: 127.0.0.1:1", &format!("lisen: there is no such field here (did you mean listen?); {top}"));
    check_settings("^pepper: x", &format!("pepper: there is no such field here; {top}"));
    check_settings(
        "admin: { ^tokn: x }",
        "admin.tokn: there is no such field here (did you mean token?); there are: listen, token, \
    token_file, metrics_token, metrics_token_file, tls",
    );
    check_settings("listen: ^[1]", "listen: must be a text");
    check_settings("drain: ^null", "drain: must not be empty; give it a value or leave it out");
    check_settings("admin:\n  token^:", "admin.token: must not be empty; give it a value or leave it out");
    check_settings("drain: 1s\n^drain: 2s", "drain is there twice; keep one");
    check(&format!("{POLICIES}{STORE}---\n^a: b\n"), &["only single YAML document expected but multiple found"]);

    let whole = "policies.login.limits[0].capacity: must be a whole number from 1 to 9007199254740992";
    for bad in ["-5", "1.5", "lots", "99999999999999999999"] {
        check_limit(&format!("{{ name: a, capacity: ^{bad} }}"), whole);
    }
    check_limit(
        "{ ^nam: a }",
        "policies.login.limits[0].nam: there is no such field here (did you mean name?); there are: name, capacity, refill, per, interval, \
         quota, every, time_zone",
    );
    check_limit(
        "^{ name: a, capacity: 1, refill: 1 }",
        "policies.login.limits[0].per: is missing; add the period of the refill, such as 1s",
    );
    check_limit(
        "{ name: ^a b }",
        "policies.login.limits[0].name: \"a b\" is not a name: use 1 to 64 of A-Z a-z 0-9 _ . -",
    );
    check_limit(
        "{ name: a, capacity: 1, refill: 1, per: 1s, interval: ^yes }",
        "policies.login.limits[0].interval: must be true or false",
    );
    check(&format!("{STORE}policies:\n  value:\n    limits: ^3\n"), &["policies.value.limits: must be a list"]);
    check(
        &format!("{STORE}policies:\n  ^a/b:\n    limits: []\n"),
        &["policies.a/b: \"a/b\" is not a name: use 1 to 64 of A-Z a-z 0-9 _ . -"],
    );
    let limits = "limits: [ { name: a, capacity: 1, refill: 1, per: 1s } ]";
    check(
        &format!("{STORE}policies:\n  a: {{ {limits} }}\n  ^a: {{ {limits} }}\n"),
        &["policies: a is there twice; keep one"],
    );
}

#[test]
fn faulty_yaml_is_refused_where_it_breaks() {
    let message = parse("store: {").unwrap_err().to_string();
    assert!(message.starts_with("f.yaml:"), "{message}");
    let message = parse("store:\n\turl: x\n").unwrap_err().to_string();
    assert!(message.starts_with("f.yaml:2:"), "{message}");
}

#[test]
fn limits_are_checked() {
    check_limit(
        "{ name: a, capacity: ^0, refill: 1, per: 1s }",
        "policies.login.limits[0].capacity: is 0, which denies everything; use at least 1",
    );
    check_limit(
        "{ name: a, capacity: 1, refill: ^0, per: 1s }",
        "policies.login.limits[0].refill: is 0, so the bucket never refills; use at least 1",
    );
    check_limit(
        "^{ name: a, capacity: 800, refill: 1, per: 1d }",
        "policies.login.limits[0]: it takes 800 days to fill: the most is 366 days; use a smaller capacity or a faster \
         refill",
    );
    check_limit(
        "{ name: a, capacity: 1, refill: 1, per: 1s }\n      - { name: ^a, capacity: 2, refill: 1, per: 1m }",
        "policies.login.limits[1].name: a is there twice; give each limit of a policy its own name",
    );
    for (per, reason) in [
        ("0s", "must be from 1ms to 366d"),
        ("367d", "is over 366d, the longest there is"),
        ("60", "needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m"),
        ("0.1ms", "is not a whole number of milliseconds; round it"),
    ] {
        check_limit(
            &format!("{{ name: a, capacity: 1, refill: 1, per: ^{per} }}"),
            &format!("policies.login.limits[0].per: {reason}"),
        );
    }
}

/// The fault of a file whose policy `login` has a good limit and this.
fn check_policy(marked: &str, expected: &str) {
    let limits = "limits: [ { name: a, capacity: 1, refill: 1, per: 1s } ]";
    check(&format!("{STORE}policies:\n  login:\n    {limits}\n    {marked}\n"), &[expected]);
}

#[test]
fn quotas_bans_and_overrides_are_read() {
    let config = parse(&format!(
        "{STORE}key_pepper: '${{TOKEN}}'
refunds: false
policies:
  login:
    limits: [ {{ name: month, quota: 100, every: month, time_zone: Europe/Paris }}, {{ name: day, quota: 5, every: day }} ]
    ban: {{ after: 20, within: 10m, for: 1h }}
    overrides: true
"
    ))
    .unwrap();
    let login = config.policies.get("login").unwrap();
    let shown: Vec<_> = login.limits().iter().map(|limit| format!("{:?}", limit.rule)).collect();
    assert_eq!(shown, ["Quota(100 every month in Europe/Paris)", "Quota(5 every day in UTC)"]);
    assert_eq!(login.ban(), Some(&Ban::new(20, 600_000, 3_600_000).unwrap()));
    assert!(login.overrides() && config.key_pepper.is_some() && config.refunds == Some(false));
    assert!(!format!("{config:?}").contains("hunter2"), "{config:?}");
}

#[test]
fn refunds_are_for_this_machine_unless_said_otherwise() {
    let refunds = |listen: &str| {
        let config = parse(&format!("listen: {listen}\n{STORE}{POLICIES}")).unwrap();
        config.allows_refunds(&config.listen)
    };
    assert!(refunds("127.0.0.1:1") && refunds("unix:/run/s.sock"));
    assert!(!refunds("0.0.0.0:1"));
    assert!(refunds("0.0.0.0:1\ntoken: hunter2"));
    assert!(!refunds("127.0.0.1:1\ntoken: hunter2\nrefunds: false"));
}

#[test]
fn quotas_and_bans_are_checked() {
    let limit = "policies.login.limits[0]";
    check_limit(
        "{ name: a, quota: ^0, every: day }",
        &format!("{limit}.quota: quota is 0: it must be from 1 to 9007199254740991"),
    );
    check_limit("^{ name: a, quota: 1 }", &format!("{limit}.every: is missing; add minute, hour, day, week or month"));
    check_limit(
        "{ name: a, quota: 1, every: ^year }",
        &format!("{limit}.every: every is \"year\": it must be minute, hour, day, week or month"),
    );
    check_limit(
        "{ name: a, quota: 1, every: ^mnth }",
        &format!("{limit}.every: every is \"mnth\": it must be minute, hour, day, week or month (did you mean month?)"),
    );
    check_limit(
        "{ name: a, quota: 1, every: day, time_zone: ^Mars }",
        &format!("{limit}.time_zone: there is no time zone \"Mars\": use an IANA name such as Europe/Paris or UTC"),
    );
    check_limit(
        "{ name: a, quota: 1, every: day, per: ^1s }",
        &format!("{limit}.per: a quota counts in calendar windows; keep quota, every and time_zone alone"),
    );
    check_limit(
        "{ name: a, capacity: 1, refill: 1, per: 1s, every: ^day }",
        &format!("{limit}.every: belongs to a quota; add quota: and leave out capacity, refill and per"),
    );
    check_policy("ban: { after: 1, within: ^0s, for: 1h }", "policies.login.ban.within: must be from 1ms to 366d");
    check_policy("ban: { after: 1, within: 1s, for: ^0s }", "policies.login.ban.for: must be from 1ms to 366d");
    check_policy(
        "ban: { after: ^0, within: 1s, for: 1h }",
        "policies.login.ban.after: ban.after is 0: it must be from 1 to 2147483647 denials",
    );
    check_policy("overrides: ^1", "policies.login.overrides: must be true or false");
    check_settings("key_pepper: ^''", "key_pepper: is empty; give it a value or leave it out");
}

#[test]
fn settings_are_checked() {
    let address =
        "not an address to listen on; use IP:port such as 127.0.0.1:8080 or [::]:8080, or unix:/absolute/path";
    check_settings("listen: ^localhost:80", &format!("listen: {address}"));
    check_settings("admin: { listen: ^'8081' }", &format!("admin.listen: {address}"));
    check_settings(
        "admin: { listen: ^'[::]:8081' }",
        "admin.listen: other machines can reach this address, so admin.token is required; set it, for example token: \
         ${SLUICEGATE_ADMIN_TOKEN}",
    );
    check_settings("admin: { token: ^'' }", "admin.token: is empty; give it a value or leave it out");
    check_settings("admin: { token: ^'${BLANK}' }", "admin.token: is empty; give it a value or leave it out");
    check_settings(
        "admin: { token: ^'${GONE}' }",
        "admin.token: the environment variable GONE is not set (or is not Unicode); set it",
    );
    check_settings(
        "admin: { token: ^'${' }",
        "admin.token: ${ without a variable's name and }; write ${NAME}, or $${ for a literal ${",
    );
    let both = "listen and admin.listen are both 127.0.0.1:8081; give each its own address";
    check_settings("listen: ^127.0.0.1:8081", both);
    check_settings("listen: 127.0.0.1:8081\nadmin: { listen: ^127.0.0.1:8081 }", both);
    check_settings("drain: ^soon", "drain: needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m");
}

#[test]
fn all_faults_of_value_are_told_in_the_order_of_the_file() {
    check(
        "listen: ^here
store: { url: ^'http://host', timeout: ^never }
policies:
  b: { limits: [ { name: a, capacity: ^0, refill: 1, per: 1s }, { name: b, capacity: 1, refill: ^0, per: 1s } ] }
  a: { limits: [ { name: a, capacity: 1, refill: 1, per: ^1w } ] }
drain: ^1x
",
        &[
            "listen: not an address to listen on; use IP:port such as 127.0.0.1:8080 or [::]:8080, or \
             unix:/absolute/path",
            store::UNSUPPORTED,
            "store.timeout: needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m",
            "policies.b.limits[0].capacity: is 0, which denies everything; use at least 1",
            "policies.b.limits[1].refill: is 0, so the bucket never refills; use at least 1",
            "policies.a.limits[0].per: needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m",
            "drain: needs a number and a unit: ms, s, m, h or d, such as 20ms or 1m",
        ],
    );
}

#[test]
fn no_message_shows_a_secret() {
    for yaml in [
        "admin: { token: [ hunter2 ] }",
        "admin: { token: hunter2, listen: '${TOKEN}' }",
        "admin: { token: hunter2 }\ndrain: '${TOKEN}'",
        "admin: { token: hunter2, listen: 'x' }",
        "admin:\n  token: hunter2\n  token: hunter2",
        "admin:\n  token: hunter2\n token: x",
    ] {
        let errors = parse(&format!("{yaml}\n{STORE}{POLICIES}")).unwrap_err();
        assert!(!format!("{errors} {errors:?}").contains("hunter2"), "{errors}");
    }
}

#[test]
fn a_file_that_can_not_be_read_is_named() {
    let message = Config::load(Path::new("/nowhere/f.yaml"), &environment).unwrap_err().to_string();
    assert!(message.starts_with("/nowhere/f.yaml: can't be read: "), "{message}");
}

#[test]
fn the_example_is_good() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sluicegate.yaml");
    let config = Config::load(&path, &|_| None).unwrap_or_else(|errors| panic!("{errors}"));
    for policy in ["per-address", "login", "login-account", "api"] {
        assert!(config.policies.get(policy).is_some(), "{policy}");
    }
}
