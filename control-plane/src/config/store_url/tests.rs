use super::*;
use crate::config::{
    HostPort,
    host::{HostError, HostsError},
};

/// What a good URL says, in one line: where, database, TLS, user and password.
fn check(text: &str, expected: &str) {
    let url = StoreUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let hosts = |hosts: &[HostPort]| hosts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let mut said = match &url.topology {
        Topology::Memory => "memory".to_owned(),
        Topology::Unix(path) => format!("unix {}", path.display()),
        Topology::Server(server) => format!("server {server}"),
        Topology::Sentinel { sentinels, master } => format!("master {master} of {}", hosts(sentinels)),
        Topology::Cluster { seeds } => format!("cluster {}", hosts(seeds)),
    };
    if url.database != 0 {
        said.push_str(&format!(" db={}", url.database));
    }
    if url.tls {
        said.push_str(" tls");
    }
    if let Some(username) = &url.username {
        said.push_str(&format!(" user={username}"));
    }
    if let Some(password) = &url.password {
        said.push_str(&format!(" pass={}", password.expose()));
    }
    assert_eq!(said, expected, "{text}");
    assert!(!format!("{url:?}").contains("hunter2"), "{url:?}");
}

fn refuse(text: &str, expected: StoreUrlError) {
    assert_eq!(StoreUrl::parse(text).map(|url| format!("{url:?}")), Err(expected), "{text}");
    assert!(!expected.to_string().contains("hunter2"), "{expected}");
}

#[test]
fn servers_and_sockets() {
    check("redis://127.0.0.1:6379", "server 127.0.0.1:6379");
    check("redis://redis.example", "server redis.example:6379");
    check("redis://[::1]:7000/3", "server [::1]:7000 db=3");
    check("redis://user:hunter2@host:6380/0", "server host:6380 user=user pass=hunter2");
    check("redis://:hunter2@host/", "server host:6379 pass=hunter2");
    check("redis://user@host", "server host:6379 user=user");
    check(" REDIS://host/4294967295\n", "server host:6379 db=4294967295");
    check("rediss://host/1", "server host:6379 db=1 tls");
    check("memory://", "memory");
    check("unix:///run/redis.sock", "unix /run/redis.sock");
    check("unix:/run/redis.sock?db=2&user=u&pass=hunter2", "unix /run/redis.sock db=2 user=u pass=hunter2");
    check("unix:///run/%61%20b,@c:/s?user=", "unix /run/a b,@c:/s");
}

#[test]
fn sentinels_and_clusters() {
    check("redis+sentinel://h1,h2:26380,[::1]/a-b.c_1", "master a-b.c_1 of h1:26379 h2:26380 [::1]:26379");
    check("redis+sentinel://u:hunter2@h/m/2", "master m of h:26379 db=2 user=u pass=hunter2");
    check("rediss+sentinel://h/m/", "master m of h:26379 tls");
    check("redis+cluster://h1:7000,h2,[::2]:7", "cluster h1:7000 h2:6379 [::2]:7");
    check("redis+cluster://:hunter2@h1/0", "cluster h1:6379 pass=hunter2");
    check("rediss+cluster://h1,h2/", "cluster h1:6379 h2:6379 tls");
}

#[test]
fn logins_are_percent_decoded() {
    check("redis://a%3Ab:%68unter2%2F%40%3a%25%23%3F@h", "server h:6379 user=a:b pass=hunter2/@:%#?");
    check("redis://a:b:c@d@h", "server h:6379 user=a pass=b:c@d");
    check("redis://a,b:c,d@h", "server h:6379 user=a,b pass=c,d");
    check("redis://u:100%@h", "server h:6379 user=u pass=100%");
    check("unix:/s?user=%C3%A4&pass=a+b%26%3D", "unix /s user=ä pass=a+b&=");
    refuse("redis://u:%FF@h", StoreUrlError::NotUtf8);
    refuse("unix:/s?pass=%FF", StoreUrlError::NotUtf8);
    for text in ["redis://@h", "redis://:@h", "redis://u:@h", "redis+cluster://u:@h", "unix:/s?pass="] {
        refuse(text, StoreUrlError::EmptyPassword);
    }
}

#[test]
fn what_cuts_a_password_in_two_is_told() {
    for text in ["redis://:hun/ter2@host", "redis://:hunter2#x@host", "redis+cluster://:x?hunter2@host", "redis://h/@"]
    {
        refuse(text, StoreUrlError::Unencoded);
    }
}

#[test]
fn other_kinds_are_refused() {
    for text in ["", "127.0.0.1:6379", "//host", "höst:1", "1redis://host", "redis//host"] {
        refuse(text, StoreUrlError::NotAUrl);
    }
    for text in ["localhost:6379", "http://host", "memory://x", "memory:"] {
        refuse(text, StoreUrlError::Unsupported);
    }
    refuse("valkey://host", StoreUrlError::OtherName("redis"));
    refuse("valkeys://host", StoreUrlError::OtherName("rediss"));
    refuse("redis-sentinel://host/m", StoreUrlError::OtherName("redis+sentinel"));
    refuse("redis+unix:///run/s", StoreUrlError::OtherName("unix"));
    refuse("rediss+unix:///run/s", StoreUrlError::TlsSocket);
}

#[test]
fn hosts_are_checked() {
    for text in ["redis:", "redis://", "redis:///0", "redis://:6379", "rediss://u:hunter2@", "redis:host"] {
        refuse(text, StoreUrlError::NoHost("redis://HOST:PORT"));
    }
    refuse("redis+sentinel:///m", StoreUrlError::NoHost("redis+sentinel://HOST,HOST/MASTER"));
    refuse("redis+cluster://", StoreUrlError::NoHost("redis+cluster://HOST,HOST"));
    refuse("redis://host:99999", StoreUrlError::Host(HostError::Port));
    refuse("redis://::1", StoreUrlError::Host(HostError::NotAHost));
    refuse("redis://0.0.0.0", StoreUrlError::Host(HostError::Wildcard));
    refuse("redis://h1,h2", StoreUrlError::ManyHosts);
    refuse("redis+cluster://h1,,h2", StoreUrlError::Hosts(HostsError::Host(2, HostError::Empty)));
    refuse("redis+sentinel://h1,h1:26379/m", StoreUrlError::Hosts(HostsError::Twice(2, 1)));
}

#[test]
fn what_follows_the_hosts_is_checked() {
    for text in ["redis://host/zero", "redis://host/-1", "redis://host/+1", "redis://host/1/", "redis://host//1"] {
        refuse(text, StoreUrlError::NotADatabase);
    }
    refuse("redis://host/4294967296", StoreUrlError::NotADatabase);
    refuse("redis+sentinel://h", StoreUrlError::NoMaster);
    refuse("redis+sentinel://h//2", StoreUrlError::NoMaster);
    refuse("redis+sentinel://h/my%20master", StoreUrlError::NotAMaster);
    refuse("redis+sentinel://h/m/x", StoreUrlError::NotADatabaseOfMaster);
    for text in ["redis+cluster://h/1", "redis+cluster://h/x", "redis+cluster://h/0/"] {
        refuse(text, StoreUrlError::ClusterPath);
    }
    refuse("redis://host?timeout=1", StoreUrlError::Parameters);
    refuse("redis+sentinel://h/m?db=1", StoreUrlError::Parameters);
    refuse("rediss://host#insecure", StoreUrlError::Fragment);
}

#[test]
fn sockets_are_checked() {
    for text in ["unix:", "unix://run/redis.sock", "unix:///", "unix:relative", "unix:/a%00", "unix:?db=1"] {
        refuse(text, StoreUrlError::NoPath);
    }
    refuse("unix:///run/redis.sock?db=x", StoreUrlError::NotADatabase);
    for text in ["unix:/s?dbb=1", "unix:/s?db", "unix:/s?db=1&db=1", "unix:/s?", "unix:/s?db=1?pass=hunter2"] {
        let expected = if text.ends_with("hunter2") { StoreUrlError::NotADatabase } else { StoreUrlError::Parameters };
        refuse(text, expected);
    }
    refuse("unix:/s?pass=hunter2#x", StoreUrlError::Fragment);
}
