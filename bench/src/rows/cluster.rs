//! Row n: three masters.

use anyhow::Result;
use sluicegate_tests::Service;

use super::{KEYS, POLICIES, Row, has_leases, http::compared, proxies, without_leases};
use crate::{
    figure::{Figure, Goal, Line},
    load::{Load, Wrk},
    peer::Bare,
    rounds::Spread,
    setting::Setting,
    side::{Side, Turn, by_turns},
    store::{Masters, Store},
    tally::{Tally, scripts_of},
};

const BODY: &str = r#"{"checks":[{"policy":"api","key":"{key}"}]}"#;

pub(super) async fn all(setting: &Setting) -> Result<Vec<Line>> {
    let (masters, store) = (Masters::start().await?, Store::start().await?);
    let mut on_cluster = Service::start(POLICIES, &masters.url()).await?;
    let mut on_one = Service::start(POLICIES, &store.url()).await?;
    let side = |name, service: &mut Service, pids: Vec<u32>, keys| {
        let admin = service.admin_port();
        let load = Load::Wrk(Wrk::post(service.port(), "/v1/check", BODY, keys));
        let side = Side::new(name, load).on(pids).on([service.process().id()]);
        side.counted_by(Tally::Checks { admin, verdict: "allowed" })
    };

    let before = scripts(&masters).await?;
    let spread = [side("cluster, 100,000 keys", &mut on_cluster, masters.pids()?, KEYS)];
    by_turns(setting, &spread).await?;
    let after = scripts(&masters).await?;
    let mut lines = vec![share(&before, &after)];

    let sides = [
        side("cluster, one key", &mut on_cluster, masters.pids()?, 1),
        side("one Redis, one key", &mut on_one, vec![store.pid()?], 1),
    ];
    let turns = by_turns(setting, &sides).await?;
    let scenario = "`/v1/check`, one key for everybody, 3 masters";
    lines.push(Line::Figure(compared(Row::N, scenario, "one Redis", &turns[0], &turns[1], Goal::AtLeast(0.9))));
    lines.push(leased(setting, &masters, &on_cluster).await?);
    Ok(lines)
}

/// The busiest shard's scripts over an even share, and of the least busy one the same.
fn share(before: &[u64], after: &[u64]) -> Line {
    let grown: Vec<u64> = before.iter().zip(after).map(|(before, after)| after - before).collect();
    let even = grown.iter().sum::<u64>() as f64 / grown.len() as f64;
    let shares = Spread::of(grown.iter().map(|scripts| *scripts as f64 / even));
    let furthest = if shares.most - 1.0 > 1.0 - shares.least { shares.most - 1.0 } else { 1.0 - shares.least };
    let scenario = "scripts of a shard, 100,000 keys, 3 masters: furthest from an even share";
    let figure = Figure::new(Row::N, scenario, "an even share", Spread::of([furthest]), Goal::AtMost(0.05));
    Line::Figure(figure.of(format!("{shares:.3}"), format!("{grown:?}")))
}

/// Scripts a decision where the filter leases the one key's tokens.
async fn leased(setting: &Setting, masters: &Masters, service: &Service) -> Result<Line> {
    let scenario = "scripts run, one key for everybody through Envoy with leases, 3 masters";
    if !has_leases() {
        return Ok(without_leases(Row::N, scenario));
    }
    let upstream = Bare::upstream(&setting.bare_server).await?;
    let envoy = proxies::ours(service.port(), upstream.port(), &proxies::plugin("api", true)).await?;
    let load = Load::Wrk(Wrk::get(envoy.port(), "/", [proxies::SUBJECT, "hot"], 1));
    let side = Side::new("leases on a cluster", load)
        .counted_by(Tally::Verdicts { envoy_admin: envoy.admin_port(), verdict: "allowed" });
    let mut each = Vec::new();
    for _ in 0..setting.rounds {
        let before: u64 = scripts(masters).await?.iter().sum();
        let turn: Turn = side.turn(setting.turn).await?;
        let after: u64 = scripts(masters).await?.iter().sum();
        // The second of warm-up has its scripts too, so this is a little more than the truth.
        each.push((after - before) as f64 / turn.seen.answers as f64);
    }
    Ok(Line::Figure(Figure::new(Row::N, scenario, "decisions", Spread::of(each), Goal::AtMost(0.02))))
}

async fn scripts(masters: &Masters) -> Result<Vec<u64>> {
    let mut counts = Vec::new();
    for node in masters.nodes() {
        counts.push(scripts_of(node).await?);
    }
    Ok(counts)
}
