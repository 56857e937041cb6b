//! Row m: what more limits cost.

use anyhow::Result;
use sluicegate_tests::Service;

use super::{KEYS, Row, http::pids, rate};
use crate::{
    figure::{Figure, Goal, Line},
    load::{Load, Wrk},
    rounds::Spread,
    setting::Setting,
    side::{Side, by_turns, each},
    store::Store,
    tally::Tally,
};

/// Limits of one policy, each with what it is called when measured. The first is what the others are compared with.
const LIMITS: [(u64, &str); 4] = [(1, "1 limit"), (2, "2 limits"), (4, "4 limits"), (8, "8 limits")];
/// Checks of one call, likewise; a call with one is the policy with one limit.
const CHECKS: [(u64, &str); 2] = [(2, "2 checks"), (4, "4 checks")];

pub(super) async fn all(setting: &Setting) -> Result<Vec<Line>> {
    let store = Store::start().await?;
    let mut service = Service::start(&config(), &store.url()).await?;
    let mut sides = Vec::new();
    let admin = service.admin_port();
    let mut side = |name, body: String| -> Result<Side> {
        let load = Load::Wrk(Wrk::post(service.port(), "/v1/check", body, KEYS));
        Ok(Side::new(name, load).on(pids(&mut service, &store)?))
    };
    for (limits, name) in LIMITS {
        let body = call(&[format!("limits-{limits}")]);
        sides.push(side(name, body)?.counted_by(Tally::Checks { admin, verdict: "allowed" }));
    }
    for (checks, name) in CHECKS {
        let policies: Vec<_> = (1..=checks).map(|check| format!("check-{check}")).collect();
        // Each call counts as several checks, so only the answers tell.
        sides.push(side(name, call(&policies))?);
    }
    let turns = by_turns(setting, &sides).await?;

    let figure = |index: usize, more: u64, name: &str, scenario: &str| {
        let cost = |index: usize| each(&turns[index], |turn| turn.cpu_us_each());
        let ratio = Spread::of_ratios(&cost(index), &cost(0));
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let goal = Goal::Below(more as f64);
        let shown = |index: usize| format!("{:.0} µs, {}", Spread::of(cost(index)).median, rate(&turns[index]));
        Line::Figure(
            Figure::new(Row::M, format!("CPU time a call, {name} {scenario}"), "1", ratio, goal)
                .of(shown(index), shown(0)),
        )
    };
    let limits =
        LIMITS.iter().enumerate().skip(1).map(|(index, (more, name))| figure(index, *more, name, "in one policy"));
    let checks =
        CHECKS.iter().enumerate().map(|(index, (more, name))| figure(LIMITS.len() + index, *more, name, "in one call"));
    Ok(limits.chain(checks).collect())
}

/// A body that checks these policies for one subject.
fn call(policies: &[String]) -> String {
    let checks: Vec<_> = policies.iter().map(|policy| format!(r#"{{"policy":"{policy}","key":"{{key}}"}}"#)).collect();
    format!(r#"{{"checks":[{}]}}"#, checks.join(","))
}

fn config() -> String {
    let limit = |number: u64| format!("{{ name: l{number}, capacity: {}, refill: 1, per: 1s }}", 30_000_000 - number);
    let policy = |name: String, limits: u64| {
        let limits: Vec<_> = (0..limits).map(limit).collect();
        format!("  {name}: {{ limits: [{}] }}\n", limits.join(", "))
    };
    let of_limits = LIMITS.iter().map(|(limits, _)| policy(format!("limits-{limits}"), *limits));
    let of_checks = (1..=CHECKS[CHECKS.len() - 1].0).map(|check| policy(format!("check-{check}"), 1));
    format!("store: {{ timeout: 1s }}\npolicies:\n{}", of_limits.chain(of_checks).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_its_checks() {
        assert_eq!(
            call(&["a".to_owned(), "b".to_owned()]),
            r#"{"checks":[{"policy":"a","key":"{key}"},{"policy":"b","key":"{key}"}]}"#
        );
    }
}
