//! redis-benchmark: one command again and again, each connection waiting for the reply.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::{CONNECTIONS, Seen, output};

/// Enough to see how fast it goes.
const FIRST: u64 = 20_000;

/// One command, in which `__rand_int__` is 12 digits of a random number below `keys`.
#[derive(Clone, Debug)]
pub(crate) struct RedisBenchmark {
    port: u16,
    words: Vec<String>,
    keys: u32,
    /// Commands a second of the last run; 0 before the first.
    rate: Arc<AtomicU64>,
}

impl RedisBenchmark {
    /// The command, word by word.
    pub(crate) fn new(port: u16, words: Vec<String>, keys: u32) -> Self {
        Self { port, words, keys, rate: Arc::default() }
    }

    /// It knows no time limit, but a number of commands: the first run finds out how many a second, the next make as
    /// many as that takes.
    pub(super) async fn run(&self, time: Duration) -> Result<Seen> {
        let rate = self.rate.load(Ordering::Relaxed);
        let seen = self.commands(FIRST.max(rate * time.as_secs())).await?;
        let rate = u128::from(seen.answers) * 1_000_000 / seen.elapsed.as_micros().max(1);
        self.rate.store(u64::try_from(rate)?, Ordering::Relaxed);
        Ok(seen)
    }

    async fn commands(&self, count: u64) -> Result<Seen> {
        let mut command = Command::new("redis-benchmark");
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-c", &CONNECTIONS.to_string()]);
        command.args(["-n", &count.to_string(), "-r", &self.keys.to_string(), "--csv"]).args(&self.words);
        parse(&output(&mut command).await?, count)
    }
}

/// `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"`,
/// then the values. The most stands for what is rarer than one in a hundred. Replies that are errors are not told:
/// Redis counts them.
fn parse(text: &str, count: u64) -> Result<Seen> {
    let line = text.lines().last().with_context(|| format!("redis-benchmark: {text}"))?;
    // The command is the first value and may have commas and quotes.
    let values: Vec<f64> = line.rsplit(',').take(7).map_while(|value| value.trim_matches('"').parse().ok()).collect();
    let [most, p99, _, p50, _, _, rate] = values[..] else { anyhow::bail!("redis-benchmark: {text}") };
    ensure!(rate > 0.0, "redis-benchmark: {text}");
    let ms = |value: f64| Duration::from_secs_f64(value / 1000.0);
    let elapsed = Duration::from_secs_f64(count as f64 / rate);
    Ok(Seen { answers: count, refused: 0, broken: 0, elapsed, p50: ms(p50), p99: ms(p99), p999: ms(most) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let text = "\
\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"
\"EVALSHA 1f2e 1 sg:{hot:a,b}:x 1\",\"20000.00\",\"2.951\",\"0.816\",\"2.871\",\"4.239\",\"5.000\",\"8.000\"
";
        let ms = Duration::from_millis;
        let p50 = Duration::from_micros(2_871);
        let expected =
            Seen { answers: 40_000, refused: 0, broken: 0, elapsed: ms(2_000), p50, p99: ms(5), p999: ms(8) };
        assert_eq!(parse(text, 40_000).unwrap(), expected);
    }

    #[test]
    fn something_else_is_an_error() {
        assert!(parse("", 1).is_err());
        assert!(parse("Could not connect to Redis at 127.0.0.1:1: Connection refused\n", 1).is_err());
    }
}
