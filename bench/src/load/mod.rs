//! Load by tools that others use too, each with what it reports in one form.

mod h2load;
mod oha;
mod redis_benchmark;
mod wrk;

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

pub(crate) use self::{h2load::H2load, oha::Oha, redis_benchmark::RedisBenchmark, wrk::Wrk};

/// Connections, or streams, at once.
pub(crate) const CONNECTIONS: u64 = 64;

/// One side's load.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    /// HTTP/1.1, as fast as it goes.
    Wrk(Wrk),
    /// gRPC, as fast as it goes.
    H2load(H2load),
    /// HTTP/1.1 at a steady rate.
    Oha(Oha),
    /// Commands to Redis, as fast as it goes.
    RedisBenchmark(RedisBenchmark),
}

/// What a load tool saw.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Answers.
    pub(crate) answers: u64,
    /// Of those, answers with another status than 2xx.
    pub(crate) refused: u64,
    /// Requests without an answer, those under way at the end left out.
    pub(crate) broken: u64,
    /// The time that it took.
    pub(crate) elapsed: Duration,
    /// The median wait for an answer.
    pub(crate) p50: Duration,
    /// The 99th percentile.
    pub(crate) p99: Duration,
    /// The 99.9th.
    pub(crate) p999: Duration,
}

impl Load {
    /// Runs it for (about) this long.
    ///
    /// # Errors
    /// When the tool is missing, fails, or says something unexpected.
    pub(crate) async fn run(&self, time: Duration) -> Result<Seen> {
        match self {
            Self::Wrk(wrk) => wrk.run(time).await,
            Self::H2load(h2load) => h2load.run(time).await,
            Self::Oha(oha) => oha.run(time).await,
            Self::RedisBenchmark(benchmark) => benchmark.run(time).await,
        }
    }
}

/// Runs to the end, or is killed when the future is dropped. Gives what was printed.
async fn output(command: &mut Command) -> Result<String> {
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await.with_context(|| format!("{program}: `cargo xtask bench` installs it"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{program} failed: {}{text}", String::from_utf8_lossy(&output.stderr));
    Ok(text)
}
