//! h2load: gRPC over HTTP/2, each stream asking again as soon as it has its answer.

use std::{fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::process::Command;

use super::{CONNECTIONS, Seen, output};

/// As many as Envoys with one worker that ask.
const CLIENTS: u64 = 2;

/// Calls of one method with one message.
#[derive(Clone, Debug)]
pub(crate) struct H2load {
    port: u16,
    method: &'static str,
    message: Vec<u8>,
}

impl H2load {
    /// Unary calls of `/package.Service/Method`.
    pub(crate) const fn new(port: u16, method: &'static str, message: Vec<u8>) -> Self {
        Self { port, method, message }
    }

    pub(super) async fn run(&self, time: Duration) -> Result<Seen> {
        let folder = TempDir::new()?;
        let body = folder.path().join("message");
        let length = u32::try_from(self.message.len()).context("a message of 4 GiB")?;
        fs::write(&body, [&[0], length.to_be_bytes().as_slice(), &self.message].concat())?;
        let mut command = Command::new("h2load");
        let streams = CONNECTIONS / CLIENTS;
        command.args(["-t1", &format!("-c{CLIENTS}"), &format!("-m{streams}"), &format!("-D{}", time.as_secs())]);
        command.args(["-H", "content-type: application/grpc", "-H", "te: trailers", "-d"]).arg(body);
        command.arg(format!("http://127.0.0.1:{}{}", self.port, self.method));
        parse(&output(&mut command).await?, time)
    }
}

/// Its last lines. What is under way when the time is over is not counted. It knows no percentiles: the mean stands for
/// the median, the most for the others.
fn parse(text: &str, elapsed: Duration) -> Result<Seen> {
    let after = |start: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(start));
        line.with_context(|| format!("h2load says nothing of {start} {text}"))
    };
    let count = |line: &str, what: &str| -> Result<u64> {
        let part = line.split(", ").find_map(|part| part.trim().strip_suffix(what));
        let number = part.with_context(|| format!("h2load says nothing of{what}: {line}"))?;
        number.trim().parse().with_context(|| format!("h2load: {line}"))
    };
    let requests = after("requests: ")?;
    let (done, failed) = (count(requests, " done")?, count(requests, " failed")?);
    let statuses = after("status codes: ")?;
    let passed = count(statuses, " 2xx")?;
    let times: Vec<&str> = after("time for request: ")?.split_whitespace().collect();
    let (Some(most), Some(mean)) = (times.get(1), times.get(2)) else { anyhow::bail!("h2load: {times:?}") };
    ensure!(done > 0, "h2load had no answer: {text}");
    let (mean, most) = (duration(mean)?, duration(most)?);
    Ok(Seen {
        answers: done,
        refused: done.saturating_sub(passed),
        broken: failed,
        elapsed,
        p50: mean,
        p99: most,
        p999: most,
    })
}

/// `318us`, `1.23ms`, `2.01s`.
fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => anyhow::bail!("h2load: {text} is no time"),
    };
    Ok(Duration::from_secs_f64(digits.parse::<f64>().with_context(|| format!("h2load: {text}"))? * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
starting benchmark...
spawning thread #0: 2 total client(s). Timing-based test with 0s of warm-up time and 2s of main duration for measurements.
Main benchmark duration is over for thread #0. Stopping all clients.
Stopped all clients for thread #0

finished in 2.00s, 21446.50 req/s, 3.86MB/s
requests: 42893 total, 42957 started, 42893 done, 42893 succeeded, 2 failed, 0 errored, 0 timeout
status codes: 42890 2xx, 0 3xx, 0 4xx, 3 5xx
traffic: 7.73MB (8102777) total, 1.55MB (1630012) headers (space savings 89.22%), 2.62MB (2745152) data
                     min         max         mean         sd        +/- sd
time for request:      318us     14.20ms      2.97ms      1.01ms    75.44%
time for connect:      119us       228us       174us        77us   100.00%
time to 1st byte:     2.10ms      2.43ms      2.27ms       233us   100.00%
req/s           :   10685.40    10760.86    10723.13       53.36   100.00%
";

    #[test]
    fn what_it_prints_is_read() {
        let (mean, most) = (Duration::from_secs_f64(0.00297), Duration::from_secs_f64(0.0142));
        let elapsed = Duration::from_secs(2);
        let seen = Seen { answers: 42_893, refused: 3, broken: 2, elapsed, p50: mean, p99: most, p999: most };
        assert_eq!(parse(TEXT, elapsed).unwrap(), seen);
    }

    #[test]
    fn something_else_is_an_error() {
        assert!(parse("", Duration::from_secs(2)).is_err());
        assert!(parse(&TEXT.replace("42893 done", "0 done"), Duration::from_secs(2)).is_err());
        assert!(duration("3min").is_err());
    }
}
