//! Rows a to f: `POST /v1/check` without a proxy.

use anyhow::{Context as _, Result};
use sluicegate_tests::{Client, Service};

use super::{KEYS, LIMITADOR, POLICIES, Row, rate, without_limitador};
use crate::{
    captured,
    figure::{Figure, Goal, Line},
    load::{Load, RedisBenchmark, Wrk},
    peer::{Bare, Limitador},
    rounds::Spread,
    setting::Setting,
    side::{Side, Turn, by_turns, each},
    store::Store,
    tally::Tally,
};

const OURS: &str = r#"{"checks":[{"policy":"api","key":"{key}"}]}"#;
const THEIRS: &str = r#"{"namespace":"bench","values":{"user":"{key}"},"delta":1}"#;

/// Rows a, b, f and the half of e.
pub(super) async fn hot(setting: &Setting) -> Result<Vec<Line>> {
    let store = Store::start().await?;
    let mut service = Service::start(POLICIES, &store.url()).await?;
    let answer = Client::new(service.port())?.take("api", "hot", 1).await?;
    let bare = Bare::answering(&setting.bare_server, &answer).await?;
    let limitador = limitador(setting, &store).await?;

    let mut sides = vec![
        ours(&mut service, &store, 1)?.noting(Tally::Scripts { redis: store.port() }),
        Side::new("bare axum", Load::Wrk(Wrk::post(bare.port(), "/v1/check", OURS, 1))).on([bare.pid()]),
    ];
    sides.extend(limitador.as_ref().map(|limitador| theirs(limitador, &store, 1)).transpose()?);
    let turns = by_turns(setting, &sides).await?;
    let (ours, bare) = (&turns[0], &turns[1]);

    let scenario = "`/v1/check`, one hot key";
    let mut lines = vec![
        Line::Figure(compared(Row::B, scenario, "bare axum", ours, bare, Goal::AtLeast(0.93))),
        Line::Figure(
            Figure::new(
                Row::F,
                "scripts run, one hot key",
                "decisions",
                Spread::of(each(ours, Turn::noted_each)),
                Goal::AtMost(0.1),
            )
            .of(
                total(ours, |turn| turn.noted.first().copied().unwrap_or_default()),
                total(ours, |turn| turn.seen.answers),
            ),
        ),
    ];
    match turns.get(2) {
        Some(theirs) => {
            lines.push(Line::Figure(compared(Row::A, scenario, LIMITADOR, ours, theirs, Goal::AtLeast(1.8))));
            lines.push(Line::Figure(cpu("service and Redis, one hot key", ours, theirs, Goal::AtMost(0.5))));
        }
        None => lines.extend([without_limitador(Row::A, scenario), without_limitador(Row::E, "CPU, one hot key")]),
    }
    Ok(lines)
}

/// Rows c, d and the other half of e.
pub(super) async fn distinct(setting: &Setting) -> Result<Vec<Line>> {
    let store = Store::start().await?;
    let mut service = Service::start(POLICIES, &store.url()).await?;
    let limitador = limitador(setting, &store).await?;
    let words = captured::take(service.port(), store.port(), "api").await?;
    let script = Load::RedisBenchmark(RedisBenchmark::new(store.port(), words, KEYS));

    let mut sides = vec![
        ours(&mut service, &store, KEYS)?,
        Side::new("the script alone", script).on([store.pid()?]).counted_by(Tally::Scripts { redis: store.port() }),
    ];
    sides.extend(limitador.as_ref().map(|limitador| theirs(limitador, &store, KEYS)).transpose()?);
    let turns = by_turns(setting, &sides).await?;
    let (ours, script) = (&turns[0], &turns[1]);

    let scenario = "`/v1/check`, 100,000 keys";
    let beside = "redis-benchmark, `lua/take.lua`";
    let mut lines = vec![Line::Figure(compared(Row::D, scenario, beside, ours, script, Goal::Stretch(0.63, 0.7)))];
    match turns.get(2) {
        Some(theirs) => {
            lines.push(Line::Figure(compared(Row::C, scenario, LIMITADOR, ours, theirs, Goal::Stretch(1.35, 1.5))));
            lines.push(Line::Figure(cpu("service and Redis, 100,000 keys", ours, theirs, Goal::AtMost(0.75))));
        }
        None => lines.extend([without_limitador(Row::C, scenario), without_limitador(Row::E, "CPU, 100,000 keys")]),
    }
    Ok(lines)
}

async fn limitador(setting: &Setting, store: &Store) -> Result<Option<Limitador>> {
    let Some(program) = &setting.limitador else { return Ok(None) };
    Limitador::start(program, &store.url()).await.map(Some)
}

/// Our side: all is allowed, and counted by the service. Of a hot key the tokens are looked at too.
fn ours(service: &mut Service, store: &Store, keys: u32) -> Result<Side> {
    let admin = service.admin_port();
    let load = Load::Wrk(Wrk::post(service.port(), "/v1/check", OURS, keys));
    let side = Side::new("sluicegate", load).on([service.process().id(), store.pid()?]);
    let side = side.counted_by(Tally::Checks { admin, verdict: "allowed" });
    Ok(if keys == 1 { side.counted_by(Tally::Tokens { admin, policy: "api", key: "hot" }) } else { side })
}

fn theirs(limitador: &Limitador, store: &Store, keys: u32) -> Result<Side> {
    let http = limitador.http_port();
    let load = Load::Wrk(Wrk::post(http, "/check_and_report", THEIRS, keys));
    Ok(Side::new(LIMITADOR, load).on([limitador.pid(), store.pid()?]).counted_by(Tally::Limitador { http }))
}

/// Our rate over theirs.
pub(super) fn compared(row: Row, scenario: &str, beside: &str, ours: &[Turn], theirs: &[Turn], goal: Goal) -> Figure {
    let ratio = Spread::of_ratios(&each(ours, Turn::rate), &each(theirs, Turn::rate));
    Figure::new(row, scenario, beside, ratio, goal).of(rate(ours), rate(theirs))
}

/// Our CPU time for a decision over theirs.
fn cpu(scenario: &str, ours: &[Turn], theirs: &[Turn], goal: Goal) -> Figure {
    let (ours, theirs) = (each(ours, Turn::cpu_us_each), each(theirs, Turn::cpu_us_each));
    let shown = |times: &[f64]| format!("{:.1} µs", Spread::of(times.iter().copied()).median);
    let scenario = format!("CPU time a decision, {scenario}");
    let ratio = Spread::of_ratios(&ours, &theirs);
    Figure::new(Row::E, scenario, "limitador and Redis", ratio, goal).of(shown(&ours), shown(&theirs))
}

fn total(turns: &[Turn], number: impl Fn(&Turn) -> u64) -> u64 {
    turns.iter().map(number).sum()
}

/// The number of the process of a service, for the sides of other rows.
///
/// # Errors
/// When the service was killed.
pub(super) fn pids(service: &mut Service, store: &Store) -> Result<[u32; 2]> {
    Ok([service.process().id(), store.pid().context("the store")?])
}
