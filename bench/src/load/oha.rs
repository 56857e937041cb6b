//! oha: HTTP/1.1 at a steady rate, whether answers come or not.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use tokio::process::Command;

use super::{CONNECTIONS, Seen, output};

/// GET of one address, or of one made anew each time.
#[derive(Clone, Debug)]
pub(crate) struct Oha {
    /// The port.
    pub(crate) port: u16,
    /// The path; with `random` a regular expression that each request's path is made of.
    pub(crate) path: &'static str,
    /// See there.
    pub(crate) random: bool,
    /// One more header, as `name: value`.
    pub(crate) header: &'static str,
    /// Requests a second.
    pub(crate) per_second: u64,
}

impl Oha {
    pub(super) async fn run(&self, time: Duration) -> Result<Seen> {
        let mut command = Command::new("oha");
        command.args(["--no-tui", "--output-format", "json", "--disable-compression", "--latency-correction"]);
        // A wait is counted from when the request was due, and those under way at the end are waited for.
        command.args(["--wait-ongoing-requests-after-deadline", "-c", &CONNECTIONS.to_string()]);
        command.args(["-q", &self.per_second.to_string(), "-z", &format!("{}s", time.as_secs()), "-H", self.header]);
        if self.random {
            command.arg("--rand-regex-url");
        }
        // In a regular expression the dots would be any character.
        let host = if self.random { r"127\.0\.0\.1" } else { "127.0.0.1" };
        command.arg(format!("http://{host}:{}{}", self.port, self.path));
        parse(&output(&mut command).await?)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    summary: Summary,
    latency_percentiles: Percentiles,
    status_code_distribution: std::collections::BTreeMap<String, u64>,
    error_distribution: std::collections::BTreeMap<String, u64>,
}

#[derive(Debug, Deserialize)]
struct Summary {
    total: f64,
}

#[derive(Debug, Deserialize)]
struct Percentiles {
    p50: Option<f64>,
    p99: Option<f64>,
    #[serde(rename = "p99.9")]
    p999: Option<f64>,
}

fn parse(text: &str) -> Result<Seen> {
    let report: Report = serde_json::from_str(text).with_context(|| format!("oha: {text}"))?;
    let answers: u64 = report.status_code_distribution.values().sum();
    ensure!(answers > 0, "oha had no answer: {:?}", report.error_distribution);
    let statuses = report.status_code_distribution.iter();
    let seconds =
        |wait: Option<f64>| Ok::<_, anyhow::Error>(Duration::from_secs_f64(wait.context("oha: no percentile")?));
    let waits = report.latency_percentiles;
    Ok(Seen {
        answers,
        refused: statuses.filter(|(status, _)| !status.starts_with('2')).map(|(_, count)| count).sum(),
        broken: report.error_distribution.values().sum(),
        elapsed: Duration::from_secs_f64(report.summary.total),
        p50: seconds(waits.p50)?,
        p99: seconds(waits.p99)?,
        p999: seconds(waits.p999)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shortened: it also has histograms and details.
    const TEXT: &str = r#"{
  "summary": { "successRate": 1.0, "total": 2.0006, "slowest": 0.004, "fastest": 0.0001, "average": 0.0003, "requestsPerSec": 99.97,
    "totalData": 1200, "sizePerRequest": 6, "sizePerSec": 600.0 },
  "latencyPercentiles": { "p10": 0.0002, "p25": 0.0003, "p50": 0.0004, "p75": 0.0005, "p90": 0.0006, "p95": 0.0007,
    "p99": 0.0021, "p99.9": 0.004, "p99.99": 0.004 },
  "statusCodeDistribution": { "200": 198, "503": 2 },
  "errorDistribution": { "connection error": 1 }
}"#;

    #[test]
    fn what_it_prints_is_read() {
        let us = Duration::from_micros;
        let seen = Seen {
            answers: 200,
            refused: 2,
            broken: 1,
            elapsed: us(2_000_600),
            p50: us(400),
            p99: us(2_100),
            p999: us(4_000),
        };
        assert_eq!(parse(TEXT).unwrap(), seen);
    }

    #[test]
    fn no_answer_is_an_error() {
        assert!(parse("").is_err());
        assert!(parse(&TEXT.replace("198", "0").replace(": 2 }", ": 0 }")).is_err());
    }
}
