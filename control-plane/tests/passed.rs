//! Sockets passed to the process, and what is wrong with some.

mod service;

use std::{net::TcpListener, os::fd::OwnedFd, process::Stdio};

use service::{Http1, Service, shell};

/// One that is ready at once: a process that takes over waits for its store.
const STORE: &str = "store: { url: 'memory://' }";

/// Standard input and output become the sockets 3 and 4.
const PASS: &str = "exec 3<&0 4>&1 0</dev/null 1>&2 && export LISTEN_PID=$$ && exec \"$@\"";

fn listening() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

fn passing(data: &TcpListener, admin: impl Into<Stdio>, count: &str, names: &str) -> std::process::Command {
    let mut command = shell(PASS);
    command.env("LISTEN_FDS", count).env("LISTEN_FDNAMES", names);
    command.stdin(OwnedFd::from(data.try_clone().unwrap())).stdout(admin);
    command
}

#[tokio::test]
async fn sockets_are_told_by_their_names_or_else_by_their_order() {
    for names in ["admin:data", "data:admin", "", "unknown:unknown"] {
        let (first, second) = (listening(), listening());
        let fd = OwnedFd::from(second.try_clone().unwrap());
        let service = Service::launched(STORE, passing(&first, fd, "2", names));
        let (data, admin) = if names == "admin:data" { (&second, &first) } else { (&first, &second) };
        assert_eq!((service.data, service.admin), (data.local_addr().unwrap(), admin.local_addr().unwrap()), "{names}");
        assert!(Http1::connect(service.admin).await.get("/metrics").await.starts_with("http/1.1 200 "));
        assert!(Http1::connect(service.data).await.get("/metrics").await.starts_with("http/1.1 404 "));
    }
    let first = listening();
    let service = Service::launched(STORE, passing(&first, Stdio::null(), "1", "data"));
    assert_eq!(service.data, first.local_addr().unwrap());
    assert!(Http1::connect(service.admin).await.get("/metrics").await.starts_with("http/1.1 200 "));
}

/// What the process says before it ends.
fn refused(mut command: std::process::Command) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sluicegate.yaml");
    let text = "listen: 127.0.0.1:0\nadmin: { listen: 127.0.0.1:0 }\nstore: { url: memory:// }\npolicies: { api: { limits: [ \
                { name: burst, capacity: 1, refill: 1, per: 1s } ] } }\n";
    std::fs::write(&file, text).unwrap();
    let output = command.args(["serve", "--config"]).arg(file).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn sockets_of_no_use_are_named() {
    let check = |command, expected: &str| {
        let error = refused(command);
        assert!(error.starts_with(expected), "{error}");
    };
    let (data, admin) = (listening(), listening());
    let admin_fd = || OwnedFd::from(admin.try_clone().unwrap());
    check(
        passing(&data, admin_fd(), "2", "data:metrics"),
        "sluicegate: LISTEN_FDNAMES: there is no use for a socket \"metrics\" in this place; name them data and admin",
    );
    check(
        passing(&data, admin_fd(), "2", "data:data"),
        "sluicegate: LISTEN_FDNAMES: there is no use for a socket \"data\" in this place",
    );
    check(passing(&data, admin_fd(), "2", "data"), "sluicegate: LISTEN_FDS: 2 sockets, and not as many names");
    check(
        passing(&data, Stdio::null(), "2", "data:admin"),
        "sluicegate: the socket \"admin\" that was passed can't be listened at: ",
    );
    let connected = std::net::TcpStream::connect(admin.local_addr().unwrap()).unwrap();
    check(
        passing(&data, OwnedFd::from(connected), "2", "data:admin"),
        "sluicegate: the socket \"admin\" that was passed can't be listened at: nobody listens there",
    );
    // The configuration's own address is local, so its check says nothing.
    let open = TcpListener::bind("0.0.0.0:0").unwrap();
    let address = open.local_addr().unwrap();
    let error = refused(passing(&data, OwnedFd::from(open), "2", "data:admin"));
    let expected =
        format!("sluicegate: admin.listen: other machines can reach {address}, where the socket that was passed");
    assert!(error.contains(&expected), "{error}");
}
