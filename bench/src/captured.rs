//! The very command that the service sends to Redis.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sluicegate_tests::Client;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::timeout,
};

/// A subject as `request.lua` makes them, and what of it differs from one to the next.
const SUBJECT: &str = "user-000000000000";
const NUMBER: &str = "000000000000";

/// Asks the service at `port` for one check of `policy`, and gives the call of a script that it made of it, word by word,
/// with `__rand_int__` for the number in the subject.
///
/// # Errors
/// When the service doesn't allow it, or no such call is seen.
pub(crate) async fn take(port: u16, redis_port: u16, policy: &str) -> Result<Vec<String>> {
    let mut monitor = BufReader::new(TcpStream::connect(("127.0.0.1", redis_port)).await?);
    monitor.write_all(b"MONITOR\r\n").await?;
    let mut line = String::new();
    monitor.read_line(&mut line).await?;
    ensure!(line.starts_with("+OK"), "MONITOR: {line}");
    let answer = Client::new(port)?.take(policy, SUBJECT, 1).await?;
    ensure!(answer.status == 200, "a check was answered with {}", answer.status);
    timeout(Duration::from_secs(5), async {
        loop {
            line.clear();
            monitor.read_line(&mut line).await?;
            if line.contains("\"EVALSHA\"") && line.contains(SUBJECT) {
                let words = words(&line)?;
                return Ok(words.iter().map(|word| word.replace(NUMBER, "__rand_int__")).collect());
            }
        }
    })
    .await
    .context("Redis ran no script")?
}

/// The words of `+1.2 [0 127.0.0.1:3] "EVALSHA" "sha" "1" "key"`.
fn words(line: &str) -> Result<Vec<String>> {
    let (_, mut rest) = line.split_once("] ").with_context(|| format!("MONITOR: {line}"))?;
    let mut words = Vec::new();
    while let Some((_, after)) = rest.split_once('"') {
        let (mut word, mut chars) = (String::new(), after.char_indices());
        rest = loop {
            match chars.next().with_context(|| format!("MONITOR: {line}"))? {
                (at, '"') => break &after[at + 1..],
                (_, '\\') => match chars.next() {
                    Some((_, escaped @ ('"' | '\\'))) => word.push(escaped),
                    _ => anyhow::bail!("an argument that is no text can't be given to redis-benchmark: {line}"),
                },
                (_, char) => word.push(char),
            }
        };
        words.push(word);
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_from_monitor() {
        let line = "+1796045423.861 [0 127.0.0.1:45986] \"EVALSHA\" \"1f2e\" \"1\" \"sg:{wide:user-000000000000}:second\" \"\" \"a\\\"b\\\\c d\"\r\n";
        let expected = ["EVALSHA", "1f2e", "1", "sg:{wide:user-000000000000}:second", "", "a\"b\\c d"];
        assert_eq!(words(line).unwrap(), expected);
    }

    #[test]
    fn bytes_are_no_words() {
        assert!(words("+1 [0 x] \"EVALSHA\" \"\\x00\"\r\n").is_err());
        assert!(words("+1 [0 x] \"EVALSHA\" \"cut").is_err());
    }
}
