//! `GET /v1/overview`: how the service is doing, for a page that shows it.

use std::{collections::BTreeMap, sync::Arc};

use axum::{Json, extract::State, http::header::CACHE_CONTROL, response::IntoResponse};
use serde::Serialize;
use utoipa::ToSchema;

use super::policies::Reload;
use crate::{
    api::{App, health, openapi::RefusedLook},
    history::{PolicySummary, Second},
    metrics::{ByVerdict, Verdict},
    store::Server,
};

/// The most policies in one answer: those that are asked for most. With ten thousand, each second's news would be a
/// megabyte.
const MAX_POLICIES: usize = 200;

/// How this replica is doing.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Overview {
    /// How long the service has been running, in seconds.
    uptime_s: u64,
    /// What changes seldom, and the policies' counts.
    state: Health,
    /// The last 15 minutes, second by second.
    seconds: Series,
}

/// What a stream of events tells whenever it changes.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// The service's version.
    version: &'static str,
    /// Whether checks are decided.
    ready: bool,
    /// Why not, if not.
    #[schema(required)]
    reason: Option<String>,
    /// Tells this set of policies from others.
    policies_version: String,
    /// What became of reading the configuration.
    reload: Reload,
    /// The store's servers; none when limits are kept in the service's own process.
    servers: Vec<ServerView>,
    /// Each policy over the last 15 minutes, by name: those in use, and those that were. At most 200, those with most
    /// checks.
    policies: Vec<PolicyCounts>,
    /// How many policies are not listed, since there are too many.
    policies_left_out: usize,
}

/// A server of the store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Server)]
struct ServerView {
    /// `host:port`, or `unix:` and a path.
    address: String,
    /// Whether calls use it.
    ready: bool,
    /// Why not, if not.
    #[schema(required)]
    reason: Option<String>,
    /// Connections that calls use.
    up: u64,
    /// Connections being made.
    joining: u64,
    /// Connections without answers: the breaker is open.
    silent: u64,
    /// Connections that can't be made, or whose server refuses.
    down: u64,
}

/// A policy over the last 15 minutes.
#[derive(Debug, Serialize, ToSchema)]
struct PolicyCounts {
    /// Its name.
    policy: String,
    /// Enforced checks by what they were answered.
    checks: Counts,
    /// The time that 99 of 100 of them did not exceed, in ms, at most a quarter too long; none without checks.
    #[schema(required)]
    p99_ms: Option<f64>,
}

/// Checks by verdict.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
struct Counts {
    /// Enough tokens.
    allowed: u64,
    /// Too few tokens.
    over_limit: u64,
    /// The cost is more than the limit ever holds.
    never: u64,
    /// Denied too often a moment before.
    banned: u64,
    /// The store gave no decision.
    failed: u64,
}

/// Seconds without gaps, oldest first: a list for each verdict, all of the same length.
#[derive(Debug, Serialize, ToSchema)]
struct Series {
    /// When the first ended, in seconds since 1970; 0 when there is none.
    first_unix_s: u64,
    /// Checks that were allowed, in each second.
    allowed: Vec<u64>,
    /// … that found too few tokens.
    over_limit: Vec<u64>,
    /// … whose cost is more than a limit holds.
    never: Vec<u64>,
    /// … of a banned subject.
    banned: Vec<u64>,
    /// … without a decision.
    failed: Vec<u64>,
}

/// A second that is over.
#[derive(Debug, Serialize)]
pub(super) struct SecondView {
    unix_s: u64,
    uptime_s: u64,
    checks: Counts,
}

/// How this replica is doing, and its last 15 minutes. Without what a proxy answers from its own memory.
#[utoipa::path(get, path = "/v1/overview", tag = "service", security((), ("token" = [])), responses(
    (status = OK, body = Overview),
    RefusedLook,
))]
pub(super) async fn overview(State(app): State<Arc<App>>) -> impl IntoResponse {
    let seconds = Series::of(&app.history.seconds());
    let overview = Overview { uptime_s: uptime_s(&app), state: Health::of(&app), seconds };
    ([(CACHE_CONTROL, "no-store")], Json(overview))
}

impl Health {
    pub(super) fn of(app: &App) -> Self {
        let readiness = health::readiness(app);
        let reload = app.limiter.policies.state();
        let (policies, policies_left_out) = policies(app);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            ready: readiness.is_ok(),
            reason: readiness.err().map(|refusal| refusal.to_string()),
            policies_version: reload.version.to_string(),
            reload: Reload::of(reload),
            servers: app.limiter.store.servers().into_iter().map(ServerView::of).collect(),
            policies,
            policies_left_out,
        }
    }
}

impl SecondView {
    pub(super) fn of(app: &App, second: Second) -> Self {
        Self { unix_s: second.unix_s, uptime_s: uptime_s(app), checks: Counts::of(&second.checks) }
    }
}

/// The policies that are listed, and how many are not.
fn policies(app: &App) -> (Vec<PolicyCounts>, usize) {
    let mut listed = BTreeMap::new();
    for policy in app.limiter.policies.current().iter() {
        let name = policy.name().to_string();
        listed.insert(name.clone(), PolicyCounts { policy: name, checks: Counts::default(), p99_ms: None });
    }
    for summary in app.history.policies() {
        listed.insert(summary.policy.to_string(), PolicyCounts::of(&summary));
    }
    let mut listed: Vec<_> = listed.into_values().collect();
    let left_out = listed.len().saturating_sub(MAX_POLICIES);
    if left_out > 0 {
        listed.sort_by_key(|policy| std::cmp::Reverse(policy.checks.total()));
        listed.truncate(MAX_POLICIES);
        listed.sort_by(|one, other| one.policy.cmp(&other.policy));
    }
    (listed, left_out)
}

impl PolicyCounts {
    fn of(summary: &PolicySummary) -> Self {
        let p99_ms = summary.p99.map(|p99| p99.as_secs_f64() * 1e3);
        Self { policy: summary.policy.to_string(), checks: Counts::of(&summary.checks), p99_ms }
    }
}

impl Counts {
    const fn of(checks: &ByVerdict<u64>) -> Self {
        Self {
            allowed: *checks.of(Verdict::Allowed),
            over_limit: *checks.of(Verdict::OverLimit),
            never: *checks.of(Verdict::Never),
            banned: *checks.of(Verdict::Banned),
            failed: *checks.of(Verdict::Failed),
        }
    }

    const fn total(&self) -> u64 {
        self.allowed + self.over_limit + self.never + self.banned + self.failed
    }
}

impl Series {
    fn of(seconds: &[Second]) -> Self {
        let list = |verdict| seconds.iter().map(|second| *second.checks.of(verdict)).collect();
        Self {
            first_unix_s: seconds.first().map_or(0, |first| first.unix_s),
            allowed: list(Verdict::Allowed),
            over_limit: list(Verdict::OverLimit),
            never: list(Verdict::Never),
            banned: list(Verdict::Banned),
            failed: list(Verdict::Failed),
        }
    }
}

impl ServerView {
    fn of(server: Server) -> Self {
        let connections = server.connections;
        Self {
            address: server.address,
            ready: server.ready.is_ok(),
            reason: server.ready.err().map(|error| error.to_string()),
            up: connections.up,
            joining: connections.joining,
            silent: connections.silent,
            down: connections.down,
        }
    }
}

fn uptime_s(app: &App) -> u64 {
    app.started.elapsed().as_secs()
}
