//! What is measured: the rows of the table, in groups that share their servers.

mod cluster;
mod envoy;
mod grpc;
mod http;
mod limits;
mod memory;
mod proxies;

use std::fmt;

use anyhow::Result;
use clap::ValueEnum;
use sluicegate_tests::{Envoy, Overlay};

use crate::{figure::Line, rounds::Spread, setting::Setting, side::Turn};

/// The service's configuration. Nothing reaches the limit of `api`, whose bucket is never full under load and gains so
/// little that what is missing is what was taken.
pub(crate) const POLICIES: &str = "
store: { timeout: 1s }
policies:
  api: { limits: [{ name: second, capacity: 30000000, refill: 1, per: 1s }] }
  one: { limits: [{ name: second, capacity: 1, refill: 1, per: 1s }] }
rate_limit_service:
  domains:
    bench: [{ match: [user], policy: api }]
";

/// Subjects, where there are many.
const KEYS: u32 = 100_000;

/// What limitador is called.
const LIMITADOR: &str = "limitador";

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Row {
    /// A hot key over HTTP, beside limitador.
    A,
    /// The same beside a server that only answers.
    B,
    /// Many keys, beside limitador.
    C,
    /// The same beside the script alone.
    D,
    /// CPU time, beside limitador.
    E,
    /// Scripts a decision.
    F,
    /// A hot key over gRPC, beside limitador.
    G,
    /// Latency added in Envoy, beside its own filter with limitador.
    H,
    /// Saturation through Envoy.
    I,
    /// A flood of denials through Envoy.
    J,
    /// An open breaker in Envoy.
    K,
    /// Memory.
    L,
    /// More limits.
    M,
    /// A cluster.
    N,
}

impl Row {
    /// All of them, in order.
    pub(crate) const ALL: &[Self] = &[
        Self::A,
        Self::B,
        Self::C,
        Self::D,
        Self::E,
        Self::F,
        Self::G,
        Self::H,
        Self::I,
        Self::J,
        Self::K,
        Self::L,
        Self::M,
        Self::N,
    ];
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{self:?}").to_lowercase())
    }
}

/// Rows that share their servers.
#[derive(Clone, Copy, Debug)]
enum Group {
    Hot,
    Distinct,
    Grpc,
    Latency,
    Saturation,
    Flood,
    Breaker,
    Memory,
    Limits,
    Cluster,
}

impl Group {
    const ALL: [(Self, &[Row]); 10] = [
        (Self::Hot, &[Row::A, Row::B, Row::E, Row::F]),
        (Self::Distinct, &[Row::C, Row::D, Row::E]),
        (Self::Grpc, &[Row::G]),
        (Self::Latency, &[Row::H]),
        (Self::Saturation, &[Row::I]),
        (Self::Flood, &[Row::J]),
        (Self::Breaker, &[Row::K]),
        (Self::Limits, &[Row::M]),
        (Self::Cluster, &[Row::N]),
        (Self::Memory, &[Row::L]),
    ];

    async fn measure(self, setting: &Setting) -> Result<Vec<Line>> {
        match self {
            Self::Hot => http::hot(setting).await,
            Self::Distinct => http::distinct(setting).await,
            Self::Grpc => grpc::hot(setting).await,
            Self::Latency => envoy::latency(setting).await,
            Self::Saturation => envoy::saturation(setting).await,
            Self::Flood => envoy::flood(setting).await,
            Self::Breaker => envoy::breaker(setting).await,
            Self::Memory => memory::all(setting).await,
            Self::Limits => limits::all(setting).await,
            Self::Cluster => cluster::all(setting).await,
        }
    }
}

/// Measures what the setting asks for. What fails takes its own group's rows along and no others.
pub(crate) async fn measure(setting: &Setting) -> Vec<Line> {
    let mut lines = Vec::new();
    for (group, rows) in Group::ALL.into_iter().filter(|(_, rows)| setting.wants(rows)) {
        eprintln!("{group:?}");
        match group.measure(setting).await {
            Ok(measured) => lines.extend(measured),
            Err(error) => {
                eprintln!("  FAILED: {error:#}");
                lines.extend(rows.iter().map(|row| Line::Failed { row: *row, why: format!("{error:#}") }));
            }
        }
    }
    lines
}

/// Of a row that needs limitador, where there is none.
fn without_limitador(row: Row, scenario: &str) -> Line {
    Line::Skipped { row, scenario: scenario.to_owned(), why: "no --limitador".to_owned() }
}

/// Of a variant with leases, where the filter has none.
fn without_leases(row: Row, scenario: &str) -> Line {
    Line::Skipped { row, scenario: scenario.to_owned(), why: "this filter has no leases".to_owned() }
}

/// Whether the filter knows leases: it is asked.
fn has_leases() -> bool {
    Envoy::validate(&Overlay::new(1, 1).plugin(&proxies::plugin("api", true))).is_ok()
}

/// A median rate, as `41.2 k/s`.
fn rate(turns: &[Turn]) -> String {
    format!("{:.1} k/s", Spread::of(turns.iter().map(Turn::rate)).median / 1000.0)
}
