//! Rows h to k: through Envoy.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use sluicegate_tests::{Envoy, Port, Service};

use super::{
    POLICIES, Row, has_leases,
    http::{compared, pids},
    proxies, without_leases, without_limitador,
};
use crate::{
    figure::{Figure, Goal, Line},
    load::{Load, Oha, Wrk},
    peer::{Bare, Limitador},
    rounds::Spread,
    setting::Setting,
    side::{Side, Turn, by_turns, each},
    store::Store,
    tally::Tally,
};

const HOT: [&str; 2] = [proxies::SUBJECT, "hot"];
const PEER: &str = "Envoy's own filter, limitador";
/// A lease may be out, and the one before not yet given back.
const LEASED: u64 = 2 * proxies::LEASE;

/// Everything behind the Envoys that pass all there is. Dropped in this order.
struct Stand {
    bare: Envoy,
    ours: Envoy,
    theirs: Option<Envoy>,
    leasing: Option<Envoy>,
    limitador: Option<Limitador>,
    service: Service,
    /// Nothing asks it but the Envoys.
    _upstream: Bare,
    store: Store,
}

/// A side of the stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Bare,
    Ours,
    Theirs,
    Leasing,
}

impl Stand {
    async fn start(setting: &Setting) -> Result<Self> {
        let store = Store::start().await?;
        let service = Service::start(POLICIES, &store.url()).await?;
        let upstream = Bare::upstream(&setting.bare_server).await?;
        let (bare, ours) = (
            proxies::bare(upstream.port()).await?,
            proxies::ours(service.port(), upstream.port(), &proxies::plugin("api", false)).await?,
        );
        let (mut limitador, mut theirs, mut leasing) = (None, None, None);
        if let Some(program) = &setting.limitador {
            let peer = limitador.insert(Limitador::start(program, &store.url()).await?);
            theirs = Some(proxies::theirs(peer.grpc_port(), upstream.port()).await?);
        }
        if has_leases() {
            leasing = Some(proxies::ours(service.port(), upstream.port(), &proxies::plugin("api", true)).await?);
        }
        Ok(Self { bare, ours, theirs, leasing, limitador, service, _upstream: upstream, store })
    }

    fn there(&self) -> Vec<Which> {
        let mut there = vec![Which::Bare, Which::Ours];
        there.extend(self.theirs.as_ref().map(|_| Which::Theirs));
        there.extend(self.leasing.as_ref().map(|_| Which::Leasing));
        there
    }

    fn side(&mut self, which: Which, load: impl Fn(u16) -> Load) -> Result<Side> {
        let admin = self.service.admin_port();
        let tokens = Tally::Tokens { admin, policy: "api", key: "hot" };
        let all = pids(&mut self.service, &self.store)?;
        let verdicts = |envoy: &Envoy| Tally::Verdicts { envoy_admin: envoy.admin_port(), verdict: "allowed" };
        Ok(match which {
            Which::Bare => Side::new("bare Envoy", load(self.bare.port())).on([self.bare.process().id()]),
            Which::Ours => Side::new("the filter", load(self.ours.port()))
                .on(all)
                .on([self.ours.process().id()])
                .counted_by(verdicts(&self.ours))
                .counted_by(Tally::Checks { admin, verdict: "allowed" })
                .counted_by(tokens),
            Which::Leasing => {
                let envoy = self.leasing.as_ref().context("leases")?;
                Side::new("the filter with leases", load(envoy.port()))
                    .on(all)
                    .on([envoy.process().id()])
                    .counted_by(verdicts(envoy))
                    .counted_by(tokens)
                    .within(LEASED)
            }
            Which::Theirs => {
                let (envoy, limitador) = self.theirs.as_ref().zip(self.limitador.as_ref()).context("limitador")?;
                Side::new("Envoy's own filter", load(envoy.port()))
                    .on([limitador.pid(), self.store.pid()?, envoy.process().id()])
                    .counted_by(Tally::Limitador { http: limitador.http_port() })
            }
        })
    }

    fn sides(&mut self, load: impl Fn(u16) -> Load) -> Result<Vec<Side>> {
        self.there().into_iter().map(|which| self.side(which, &load)).collect()
    }
}

/// One side's turns among all.
fn of<'a>(stand: &Stand, turns: &'a [Vec<Turn>], which: Which) -> Option<&'a [Turn]> {
    let at = stand.there().iter().position(|there| *there == which)?;
    turns.get(at).map(Vec::as_slice)
}

fn closed_loop(port: u16) -> Load {
    Load::Wrk(Wrk::get(port, "/", HOT, 1))
}

/// A wait that a share of requests doesn't exceed.
type Percentile = fn(&Turn) -> Duration;

const fn p50(turn: &Turn) -> Duration {
    turn.seen.p50
}

const fn p99(turn: &Turn) -> Duration {
    turn.seen.p99
}

const fn p999(turn: &Turn) -> Duration {
    turn.seen.p999
}

/// Row h.
pub(super) async fn latency(setting: &Setting) -> Result<Vec<Line>> {
    let mut stand = Stand::start(setting).await?;
    // A third of what the slower of the two can do.
    let mut least = f64::MAX;
    for which in stand.there().into_iter().filter(|which| matches!(which, Which::Ours | Which::Theirs)) {
        least = least.min(stand.side(which, closed_loop)?.turn(setting.turn).await?.rate());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate")]
    let per_second = (least / 300.0) as u64 * 100;
    eprintln!("  at {per_second} requests a second");
    let open_loop = |port| Load::Oha(Oha { port, path: "/", random: false, header: "x-user: hot", per_second });
    let sides = stand.sides(open_loop)?;
    let turns = by_turns(setting, &sides).await?;

    let bare = of(&stand, &turns, Which::Bare).context("bare Envoy")?;
    let percentiles = [("p50", p50 as Percentile, true), ("p99", p99, true), ("p99.9", p999, false)];
    let mut lines = Vec::new();
    for (name, percentile, scored) in percentiles {
        let us = |turn: &Turn| percentile(turn).as_secs_f64() * 1e6;
        let added =
            |turns: &[Turn]| turns.iter().zip(bare).map(|(turn, bare)| us(turn) - us(bare)).collect::<Vec<f64>>();
        let theirs = of(&stand, &turns, Which::Theirs).map(added);
        for (which, variant, most) in [(Which::Ours, "", 0.9), (Which::Leasing, ", with leases", 0.2)] {
            let scenario = format!("{name} added to Envoy's, at {per_second} requests a second{variant}");
            lines.push(match (of(&stand, &turns, which).map(added), &theirs) {
                (None, _) => without_leases(Row::H, &scenario),
                (_, None) => without_limitador(Row::H, &scenario),
                (Some(ours), Some(theirs)) => Line::Figure(added_latency(&scenario, &ours, theirs, scored, most)),
            });
        }
    }
    Ok(lines)
}

/// What is added, in µs a round, over what the peer adds. It is not scored where that is hardly more than noise.
fn added_latency(scenario: &str, ours: &[f64], theirs: &[f64], scored: bool, most: f64) -> Figure {
    let goal = if scored { Goal::AtMost(most) } else { Goal::None };
    let shown = |added: &[f64]| format!("{:.0} µs", Spread::of(added.iter().copied()));
    let blurred = Spread::of(theirs.iter().copied()).is_blurred();
    Figure::new(Row::H, scenario, PEER, Spread::of_ratios(ours, theirs), goal)
        .of(shown(ours), shown(theirs))
        .blurred(blurred)
}

/// Row i.
pub(super) async fn saturation(setting: &Setting) -> Result<Vec<Line>> {
    let mut stand = Stand::start(setting).await?;
    let turns = by_turns(setting, &stand.sides(closed_loop)?).await?;
    let bare = of(&stand, &turns, Which::Bare).context("bare Envoy")?;
    let ours = of(&stand, &turns, Which::Ours).context("the filter")?;
    let scenario = "allowed traffic through Envoy, one worker";
    let leasing = format!("{scenario}, with leases");
    let mut lines = vec![Line::Figure(compared(Row::I, scenario, "bare Envoy", ours, bare, Goal::None))];
    lines.push(match of(&stand, &turns, Which::Theirs) {
        Some(theirs) => Line::Figure(compared(Row::I, scenario, PEER, ours, theirs, Goal::AtLeast(1.0))),
        None => without_limitador(Row::I, scenario),
    });
    lines.push(match of(&stand, &turns, Which::Leasing) {
        Some(leased) => Line::Figure(compared(Row::I, &leasing, "bare Envoy", leased, bare, Goal::AtLeast(0.75))),
        None => without_leases(Row::I, &leasing),
    });
    Ok(lines)
}

/// Row j.
pub(super) async fn flood(setting: &Setting) -> Result<Vec<Line>> {
    let store = Store::start().await?;
    let service = Service::start(POLICIES, &store.url()).await?;
    let upstream = Bare::upstream(&setting.bare_server).await?;
    let ours = proxies::ours(service.port(), upstream.port(), &proxies::plugin("one", false)).await?;
    let refusing = proxies::refusing().await?;
    let questions = Tally::Answers { admin: service.admin_port(), path: "/v1/check" };
    let sides = [
        Side::new("denied by the filter", closed_loop(ours.port()))
            .on([ours.process().id()])
            .denied()
            .noting(questions),
        Side::new("denied by a route", closed_loop(refusing.port())).on([refusing.process().id()]).denied(),
    ];
    let turns = by_turns(setting, &sides).await?;
    let scenario = "denied flood through Envoy, one subject";
    let callouts = Spread::of(each(&turns[0], Turn::noted_each));
    let beside = "Envoy's `direct_response` of 429";
    Ok(vec![
        Line::Figure(compared(Row::J, scenario, beside, &turns[0], &turns[1], Goal::AtLeast(0.7))),
        Line::Figure(Figure::new(Row::J, "callouts in it", "denials", callouts, Goal::AtMost(0.01))),
    ])
}

/// Row k.
pub(super) async fn breaker(setting: &Setting) -> Result<Vec<Line>> {
    let upstream = Bare::upstream(&setting.bare_server).await?;
    let nobody = Port::lease()?;
    let limit = json!({ "policy": "api", "key": [{ "header": proxies::SUBJECT }] });
    let ours = proxies::ours(nobody.number(), upstream.port(), &proxies::plugin_of(&limit, "open")).await?;
    let bare = proxies::bare(upstream.port()).await?;
    let envoy_admin = ours.admin_port();
    let sides = [
        Side::new("breaker open", closed_loop(ours.port()))
            .on([ours.process().id()])
            .counted_by(Tally::Verdicts { envoy_admin, verdict: "failure_open" })
            .noting(Tally::FailedCallouts { envoy_admin }),
        Side::new("bare Envoy", closed_loop(bare.port())).on([bare.process().id()]),
    ];
    let turns = by_turns(setting, &sides).await?;
    let probes = each(&turns[0], |turn| turn.noted[0] as f64 / turn.seen.elapsed.as_secs_f64());
    let scenario = "breaker open, open route, through Envoy";
    Ok(vec![
        Line::Figure(compared(Row::K, scenario, "bare Envoy", &turns[0], &turns[1], Goal::AtLeast(0.85))),
        // A turn may see the beginnings of one more second than it has.
        Line::Figure(Figure::new(Row::K, "callouts in it (probes)", "seconds", Spread::of(probes), Goal::AtMost(1.2))),
    ])
}
