use super::*;
use crate::metrics::Verdict;

/// Totals of one policy; its latencies are all in one class.
fn total(policy: &str, allowed: u64, over_limit: u64, failed: u64) -> (Name, Total) {
    let mut checks = ByVerdict::default();
    *checks.of_mut(Verdict::Allowed) = allowed;
    *checks.of_mut(Verdict::OverLimit) = over_limit;
    *checks.of_mut(Verdict::Failed) = failed;
    let mut latencies = [0; CLASSES];
    latencies[0] = checks.total();
    (policy.parse().unwrap(), Total { checks, latencies })
}

fn totals_of(history: &History) -> Vec<(u64, u64)> {
    history.seconds().iter().map(|second| (second.unix_s, second.checks.total())).collect()
}

#[test]
fn each_second_holds_what_all_totals_grew_by() {
    let history = History::beginning_at(1_000);
    history.tick(0, [total("a", 3, 0, 0)].into_iter());
    history.tick(1, [total("a", 3, 0, 0), total("b", 1, 2, 4)].into_iter());
    history.tick(2, [total("a", 5, 1, 0), total("b", 1, 2, 4)].into_iter());
    assert_eq!(totals_of(&history), [(1_000, 3), (1_001, 7), (1_002, 3)]);
    let checks = history.seconds()[1].checks;
    assert_eq!((*checks.of(Verdict::Allowed), checks.denied(), *checks.of(Verdict::Failed)), (1, 2, 4));
}

#[test]
fn seconds_in_which_the_process_stood_still_are_there_and_empty() {
    let history = History::beginning_at(0);
    history.tick(0, [total("a", 1, 0, 0)].into_iter());
    history.tick(3, [total("a", 9, 0, 0)].into_iter());
    history.tick(3, [total("a", 10, 0, 0)].into_iter());
    assert_eq!(totals_of(&history), [(0, 1), (1, 0), (2, 0), (3, 9)]);
}

#[test]
fn nothing_is_kept_longer_than_the_window_nor_lost_before() {
    let history = History::beginning_at(0);
    for now_s in 0..3 * WINDOW_S {
        history.tick(now_s, [total("a", now_s + 1, 0, 0)].into_iter());
    }
    let seconds = totals_of(&history);
    assert_eq!(seconds.len() as u64, WINDOW_S);
    assert_eq!(seconds.first(), Some(&(2 * WINDOW_S, 1)));
    assert_eq!(seconds.last(), Some(&(3 * WINDOW_S - 1, 1)));
    // A day without a tick.
    history.tick(86_400, [total("a", 3 * WINDOW_S + 7, 0, 0)].into_iter());
    assert_eq!(history.seconds().len() as u64, WINDOW_S);
    assert_eq!(history.seconds().iter().map(|second| second.checks.total()).sum::<u64>(), 7);
}

#[test]
fn a_policy_is_summed_up_over_15_minutes_and_then_gone() {
    let history = History::beginning_at(0);
    let summaries = |history: &History| {
        let summary = |summary: &PolicySummary| {
            let checks = summary.checks;
            (summary.policy.to_string(), *checks.of(Verdict::Allowed), checks.denied(), *checks.of(Verdict::Failed))
        };
        history.policies().iter().map(summary).collect::<Vec<_>>()
    };
    history.tick(59, [total("b", 2, 3, 1), total("a", 0, 0, 0)].into_iter());
    assert_eq!(summaries(&history), [("b".to_owned(), 2, 3, 1)], "one that nobody asks for is not shown");
    assert_eq!(history.policies()[0].p99, Some(Duration::from_micros(32)));
    history.tick(60, [total("b", 2, 3, 2), total("a", 1, 0, 0)].into_iter());
    assert_eq!(summaries(&history), [("a".to_owned(), 1, 0, 0), ("b".to_owned(), 2, 3, 2)]);
    history.tick(15 * 60 + 59, [].into_iter());
    assert_eq!(summaries(&history).len(), 2, "the minute of second 59 is the 15th before this");
    history.tick(16 * 60, [].into_iter());
    assert_eq!(summaries(&history), [("a".to_owned(), 1, 0, 0), ("b".to_owned(), 0, 0, 1)]);
    history.tick(17 * 60, [].into_iter());
    assert_eq!(summaries(&history), []);
}

#[test]
fn subscribers_hear_each_second_once() {
    let history = History::beginning_at(5);
    history.tick(0, [total("a", 1, 0, 0)].into_iter());
    let mut heard = history.subscribe();
    history.tick(1, [total("a", 4, 0, 0)].into_iter());
    assert_eq!(heard.try_recv().map(|second| (second.unix_s, second.checks.total())), Ok((6, 3)));
    assert!(heard.try_recv().is_err());
}
