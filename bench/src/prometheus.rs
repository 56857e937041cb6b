//! Reading metrics.

use anyhow::{Context as _, Result};
use sluicegate_tests::Client;

/// The sum of the series of one metric at `/metrics` (or another `path`) whose labels contain all of these texts; 0 when
/// there is none.
///
/// # Errors
/// When nothing answers.
pub(crate) async fn sum(port: u16, path: &str, metric: &str, labels: &[&str]) -> Result<u64> {
    let answer = Client::new(port)?.get(path).await.with_context(|| format!("asking port {port} for metrics"))?;
    Ok(sum_of(&String::from_utf8_lossy(&answer.body), metric, labels))
}

fn sum_of(text: &str, metric: &str, labels: &[&str]) -> u64 {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(metric)?;
        let (has, value) = rest.rsplit_once(' ')?;
        let whole = has.is_empty() || has.starts_with('{');
        (whole && labels.iter().all(|label| has.contains(label))).then(|| value.parse::<f64>().ok())?
    });
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counters, far below 2^53")]
    let sum = values.sum::<f64>() as u64;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# TYPE sluicegate_checks counter
sluicegate_checks_total{policy=\"hot\",verdict=\"allowed\"} 12
sluicegate_checks_total{policy=\"wide\",verdict=\"allowed\"} 30
sluicegate_checks_total{policy=\"hot\",verdict=\"failed\"} 1
sluicegate_checks_total_other 1000
plain 7
";

    #[test]
    fn series_are_summed_by_their_labels() {
        assert_eq!(sum_of(TEXT, "sluicegate_checks_total", &["verdict=\"allowed\""]), 42);
        assert_eq!(sum_of(TEXT, "sluicegate_checks_total", &["policy=\"hot\"", "verdict=\"allowed\""]), 12);
        assert_eq!(sum_of(TEXT, "sluicegate_checks_total", &["policy=\"none\""]), 0);
        assert_eq!(sum_of(TEXT, "plain", &[]), 7);
    }
}
