//! Whether an Envoy went through its test unharmed.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use anyhow::{Result, ensure};

/// A trap, in the log: the line of the filter's hook, the proxy's, or Envoy's own end.
const TRAPS: [&str; 3] = ["panicked", "Function: proxy_on", "[critical][backtrace]"];

/// Endings of the names of statistics that stay 0: a VM that died and was made anew, and the time limits of
/// `envoy/envoy.yaml` that end a request which hangs.
const ZERO: [&str; 6] = [
    ".vm_reload_success",
    ".vm_reload_backoff",
    ".vm_reload_failure",
    ".downstream_rq_idle_timeout",
    ".downstream_rq_timeout",
    ".downstream_rq_max_duration_reached",
];

/// Blocks, so that a fixture can look on drop. The log says nothing of a hang, the statistics nothing of a trap that no
/// request followed.
pub(super) fn check(admin_port: u16, log: &str) -> Result<()> {
    for trap in TRAPS {
        ensure!(!log.contains(trap), "Envoy's log has `{trap}`");
    }
    let stats = stats(admin_port)?;
    ensure!(stats.contains("\nlistener_manager."), "no statistics: {stats}");
    for line in stats.lines() {
        let Some((name, value)) = line.split_once(": ") else { continue };
        ensure!(value == "0" || !ZERO.iter().any(|zero| name.ends_with(zero)), "{name} is {value}");
    }
    Ok(())
}

fn stats(admin_port: u16) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", admin_port))?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(b"GET /stats?type=Counters HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
