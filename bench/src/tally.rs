//! What the servers say they did: nothing wins by being wrong.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use sluicegate_tests::{Client, Node};

use crate::prometheus;

/// A number that only grows.
#[derive(Clone, Debug)]
pub(crate) enum Tally {
    /// Checks that the service at this admin port counted with one of these verdicts.
    Checks { admin: u16, verdict: &'static str },
    /// Tokens that a subject's first limit lacks, by the service's peek. Refilled ones are missing: the limits of
    /// measurements gain one a second.
    Tokens { admin: u16, policy: &'static str, key: &'static str },
    /// Questions that the service answered at this path.
    Answers { admin: u16, path: &'static str },
    /// Calls that limitador allowed.
    Limitador { http: u16 },
    /// Requests by what the filter said about them.
    Verdicts { envoy_admin: u16, verdict: &'static str },
    /// Callouts that failed, except those that an open breaker spared.
    FailedCallouts { envoy_admin: u16 },
    /// Scripts that Redis ran without an error.
    Scripts { redis: u16 },
}

impl Tally {
    /// As it stands.
    ///
    /// # Errors
    /// When nothing answers.
    pub(crate) async fn read(&self) -> Result<u64> {
        match self {
            Self::Checks { admin, verdict } => {
                let label = format!("verdict=\"{verdict}\"");
                prometheus::sum(*admin, "/metrics", "sluicegate_checks_total", &[&label]).await
            }
            Self::Tokens { admin, policy, key } => tokens_taken(*admin, policy, key).await,
            Self::Answers { admin, path } => {
                let label = format!("path=\"{path}\"");
                prometheus::sum(*admin, "/metrics", "sluicegate_http_requests_total", &["listener=\"data\"", &label])
                    .await
            }
            Self::Limitador { http } => prometheus::sum(*http, "/metrics", "authorized_calls", &[]).await,
            Self::Verdicts { envoy_admin, verdict } => {
                let label = format!("verdict=\"{verdict}\"");
                prometheus::sum(*envoy_admin, "/stats/prometheus", "sluicegate_requests_total", &[&label]).await
            }
            Self::FailedCallouts { envoy_admin } => {
                let metric = "sluicegate_callout_failures_total";
                let all = prometheus::sum(*envoy_admin, "/stats/prometheus", metric, &[]).await?;
                let spared =
                    prometheus::sum(*envoy_admin, "/stats/prometheus", metric, &["kind=\"breaker_open\""]).await?;
                Ok(all - spared)
            }
            Self::Scripts { redis } => scripts(*redis).await,
        }
    }
}

async fn tokens_taken(admin: u16, policy: &str, key: &str) -> Result<u64> {
    let answer = Client::new(admin)?.post("/v1/peek", &json!({ "policy": policy, "key": key })).await?;
    ensure!(answer.status == 200, "peek: {}", String::from_utf8_lossy(&answer.body));
    let body: serde_json::Value = serde_json::from_slice(&answer.body).context("peek's answer")?;
    let number = |name: &str| body["limits"][0][name].as_u64().with_context(|| format!("peek without {name}: {body}"));
    Ok(number("capacity")? - number("remaining")?)
}

/// Scripts that ran, as `INFO commandstats` has them.
async fn scripts(port: u16) -> Result<u64> {
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}"))?;
    let mut connection = client.get_multiplexed_async_connection().await?;
    let info: String = redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await?;
    scripts_in(&info)
}

/// The same of a node of a cluster.
///
/// # Errors
/// When it doesn't answer.
pub(crate) async fn scripts_of(node: &Node) -> Result<u64> {
    scripts_in(&node.run::<String>(&["INFO", "commandstats"]).await?)
}

fn scripts_in(info: &str) -> Result<u64> {
    let mut sum = 0;
    for line in info.lines() {
        let Some((name, counts)) = line.split_once(':') else { continue };
        if !matches!(name, "cmdstat_evalsha" | "cmdstat_eval") {
            continue;
        }
        for count in counts.trim().split(',') {
            let (what, number) = count.split_once('=').with_context(|| format!("commandstats: {line}"))?;
            match what {
                "calls" => sum += number.parse::<u64>()?,
                "failed_calls" => sum -= number.parse::<u64>()?,
                _ => {}
            }
        }
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_counted_without_those_that_failed() {
        let info = "\
# Commandstats\r
cmdstat_evalsha:calls=120,usec=4000,usec_per_call=33.33,rejected_calls=0,failed_calls=20\r
cmdstat_eval:calls=3,usec=90,usec_per_call=30.00,rejected_calls=0,failed_calls=0\r
cmdstat_get:calls=900,usec=90,usec_per_call=0.10,rejected_calls=0,failed_calls=0\r
";
        assert_eq!(scripts_in(info).unwrap(), 103);
        assert_eq!(scripts_in("# Commandstats\r\n").unwrap(), 0);
    }
}
