use std::time::Instant;

use prometheus_client::encoding::text;

use super::*;
use crate::config::Config;

const MS: Duration = Duration::from_millis(1);

/// Policies, each with these limits.
fn policies(limits: &[(&str, &[&str])]) -> Policies {
    let policy = |(name, limits): &(&str, &[&str])| {
        let limit = |limit: &&str| format!("{{ name: {limit}, capacity: 1, refill: 1, per: 1s }}");
        format!("  {name}: {{ limits: [{}] }}\n", limits.iter().map(limit).collect::<Vec<_>>().join(", "))
    };
    let policies: String = limits.iter().map(policy).collect();
    let file = format!("store: {{ url: memory:// }}\npolicies:\n{policies}");
    Config::parse("f.yaml", &file, &|_| None).unwrap().policies
}

/// The series that aren't zero.
fn counted(decisions: &Decisions) -> Vec<String> {
    let mut registry = Registry::default();
    decisions.register(&mut registry);
    let mut all = String::new();
    text::encode(&mut all, &registry).unwrap();
    let is_count = |line: &&str| !line.starts_with('#') && !line.ends_with(" 0");
    let mut lines: Vec<_> = all.lines().filter(is_count).map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn each_limit_is_counted_by_what_it_said_and_each_check_by_the_worst() {
    let (decisions, policies) = (Decisions::default(), policies(&[("login", &["burst", "day"])]));
    let login = decisions.of(policies.get("login").unwrap());
    login.decided(false, [Reason::Ok, Reason::Ok].into_iter(), MS);
    login.decided(false, [Reason::OverLimit, Reason::Ok].into_iter(), MS);
    login.decided(false, [Reason::OverLimit, Reason::Never].into_iter(), MS);
    login.failed(false, MS);
    login.decided(true, [Reason::Banned, Reason::Banned].into_iter(), MS);
    login.failed(true, MS);
    assert_eq!(
        counted(&decisions),
        [
            r#"checks_total{policy="login",verdict="allowed"} 1"#,
            r#"checks_total{policy="login",verdict="failed"} 1"#,
            r#"checks_total{policy="login",verdict="never"} 1"#,
            r#"checks_total{policy="login",verdict="over_limit"} 1"#,
            r#"decisions_total{policy="login",limit="burst",verdict="allowed"} 1"#,
            r#"decisions_total{policy="login",limit="burst",verdict="failed"} 1"#,
            r#"decisions_total{policy="login",limit="burst",verdict="over_limit"} 2"#,
            r#"decisions_total{policy="login",limit="day",verdict="allowed"} 2"#,
            r#"decisions_total{policy="login",limit="day",verdict="failed"} 1"#,
            r#"decisions_total{policy="login",limit="day",verdict="never"} 1"#,
            r#"shadow_decisions_total{policy="login",limit="burst",verdict="banned"} 1"#,
            r#"shadow_decisions_total{policy="login",limit="burst",verdict="failed"} 1"#,
            r#"shadow_decisions_total{policy="login",limit="day",verdict="banned"} 1"#,
            r#"shadow_decisions_total{policy="login",limit="day",verdict="failed"} 1"#,
        ]
    );
    let latencies: u64 = decisions.totals()[0].1.latencies.counts().iter().sum();
    assert_eq!(latencies, 4, "those of enforced checks");
}

#[test]
fn a_reloaded_policy_goes_on_counting_with_its_new_limits() {
    let decisions = Decisions::default();
    let (before, after) = (policies(&[("api", &["a", "b"])]), policies(&[("api", &["b"])]));
    decisions.of(before.get("api").unwrap()).decided(false, [Reason::Ok, Reason::Ok].into_iter(), MS);
    let api = decisions.of(after.get("api").unwrap());
    api.decided(false, [Reason::Ok].into_iter(), MS);
    // A call that began before the reload.
    decisions.of(before.get("api").unwrap()).failed(false, MS);
    assert_eq!(
        counted(&decisions),
        [
            r#"checks_total{policy="api",verdict="allowed"} 2"#,
            r#"checks_total{policy="api",verdict="failed"} 1"#,
            r#"decisions_total{policy="api",limit="a",verdict="allowed"} 1"#,
            r#"decisions_total{policy="api",limit="a",verdict="failed"} 1"#,
            r#"decisions_total{policy="api",limit="b",verdict="allowed"} 2"#,
            r#"decisions_total{policy="api",limit="b",verdict="failed"} 1"#,
        ]
    );
}

#[test]
fn all_verdicts_of_known_policies_are_there_from_the_start() {
    let decisions = Decisions::default();
    decisions.know(&policies(&[("api", &["burst"]), ("login", &["burst"])]));
    let mut registry = Registry::default();
    decisions.register(&mut registry);
    let mut all = String::new();
    text::encode(&mut all, &registry).unwrap();
    for policy in ["api", "login"] {
        for verdict in Verdict::ALL.map(Verdict::as_str) {
            let line = format!("decisions_total{{policy=\"{policy}\",limit=\"burst\",verdict=\"{verdict}\"}} 0\n");
            assert!(all.contains(&line), "{line} is not in {all}");
        }
    }
    assert!(!all.contains("shadow_decisions_total{"), "nobody has asked in shadow: {all}");
}

#[test]
fn threads_that_count_together_lose_nothing() {
    let (decisions, policies) = (Decisions::default(), policies(&[("api", &["burst"])]));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let api = decisions.of(policies.get("api").unwrap());
                    api.decided(false, [Reason::Ok].into_iter(), MS);
                }
            });
        }
    });
    assert_eq!(decisions.totals()[0].1.verdicts.of(Verdict::Allowed).get(), 4_000);
}

/// What counting adds to a check of a policy with two limits, the stages included. The bound is for a build without
/// optimisation on a busy machine; with `--release` and `--nocapture` it says what it really costs.
#[test]
fn counting_costs_a_check_microseconds_at_most() {
    const ROUNDS: u32 = 20_000;
    let (decisions, policies) = (Decisions::default(), policies(&[("api", &["burst", "day"])]));
    let policy = policies.get("api").unwrap();
    let stages = crate::metrics::Stages::default();
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let api = decisions.of(policy);
        stages.queue(Duration::ZERO);
        stages.store(MS);
        stages.total(MS);
        api.decided(false, [Reason::Ok, Reason::Ok].into_iter(), MS);
    }
    let each = begin.elapsed() / ROUNDS;
    eprintln!("counting a check takes {each:?}");
    assert!(each < Duration::from_micros(50), "{each:?}");
}
