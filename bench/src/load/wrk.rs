//! wrk: HTTP/1.1, each connection asking again as soon as it has its answer.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sluicegate_tests::repository;
use tokio::process::Command;

use super::{CONNECTIONS, Seen, output};

/// One request, or one for each of many keys in turn.
#[derive(Clone, Debug)]
pub(crate) struct Wrk {
    port: u16,
    method: &'static str,
    path: &'static str,
    body: String,
    keys: u32,
    header: Option<[&'static str; 2]>,
}

impl Wrk {
    /// POST with this body, in which `{key}` is the key: `hot` where there is one, and else `user-` with 12 digits.
    pub(crate) fn post(port: u16, path: &'static str, body: impl Into<String>, keys: u32) -> Self {
        Self { port, method: "POST", path, body: body.into(), keys, header: None }
    }

    /// GET with one header, likewise.
    pub(crate) const fn get(port: u16, path: &'static str, header: [&'static str; 2], keys: u32) -> Self {
        Self { port, method: "GET", path, body: String::new(), keys, header: Some(header) }
    }

    pub(super) async fn run(&self, time: Duration) -> Result<Seen> {
        let mut command = Command::new("wrk");
        // One thread: it asks some 200 thousand times a second, and two would keep the servers from both cores.
        command.args(["-t1", &format!("-c{CONNECTIONS}"), &format!("-d{}s", time.as_secs()), "-s"]);
        command.arg(repository("bench/src/load/request.lua")).arg(format!("http://127.0.0.1:{}", self.port));
        command.args(["--", self.method, self.path, &self.body, &self.keys.to_string()]);
        command.args(self.header.iter().flatten());
        parse(&output(&mut command).await?)
    }
}

/// The line that `request.lua` prints at the end.
fn parse(text: &str) -> Result<Seen> {
    let line = text.lines().find_map(|line| line.strip_prefix("RESULT ")).with_context(|| format!("wrk: {text}"))?;
    let numbers: Vec<u64> = line.split(' ').map(str::parse).collect::<Result<_, _>>().context("wrk's numbers")?;
    let [answers, elapsed_us, refused, broken, p50_us, p99_us, p999_us] = numbers[..] else {
        anyhow::bail!("wrk: {line}");
    };
    ensure!(answers > 0, "wrk had no answer: {text}");
    let us = Duration::from_micros;
    Ok(Seen { answers, refused, broken, elapsed: us(elapsed_us), p50: us(p50_us), p99: us(p99_us), p999: us(p999_us) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_script_prints_is_read() {
        let text = "\
Running 2s test @ http://127.0.0.1:20131
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     3.19ms  812.12us  12.67ms   84.05%
    Req/Sec    20.04k     1.33k   22.47k    73.68%
  39880 requests in 2.00s, 21.11MB read
Requests/sec:  19922.01
Transfer/sec:     10.54MB
RESULT 39880 2001803 3 1 3073 6321 9876
";
        let us = Duration::from_micros;
        let seen = Seen {
            answers: 39_880,
            refused: 3,
            broken: 1,
            elapsed: us(2_001_803),
            p50: us(3_073),
            p99: us(6_321),
            p999: us(9_876),
        };
        assert_eq!(parse(text).unwrap(), seen);
    }

    #[test]
    fn a_server_that_does_not_answer_is_an_error() {
        let error = parse("unable to connect to 127.0.0.1:1 Connection refused\n").unwrap_err();
        assert_eq!(error.to_string(), "wrk: unable to connect to 127.0.0.1:1 Connection refused\n");
        assert!(parse("RESULT 0 2000000 0 64 0 0 0\n").is_err());
    }
}
