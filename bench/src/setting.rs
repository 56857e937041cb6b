//! What a run was asked for, and what it has to work with.

use std::{env, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use clap::Parser;

use crate::rows::Row;

/// Sluicegate measured beside what else there is.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
pub(crate) struct Arguments {
    /// A limitador-server to compare with; without, the rows that need it are skipped, and say so
    #[arg(long, value_name = "PATH")]
    limitador: Option<PathBuf>,
    /// Rows to measure, such as a,c: they are printed, and bench/RESULTS.md is left as it is
    #[arg(long, value_delimiter = ',', value_name = "ROWS")]
    only: Vec<Row>,
    /// Write bench/RESULTS.md with these rows alone
    #[arg(long, requires = "only")]
    write: bool,
    /// Rounds, in each of which all sides of a row take their turn; at least 5 for a figure that counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// How long one side's turn is
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
    /// How long the soak of row l is
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u64).range(10..))]
    soak_seconds: u64,
}

impl Arguments {
    /// Whether the results go into the file.
    pub(crate) const fn writes(&self) -> bool {
        self.only.is_empty() || self.write
    }
}

/// The same, checked.
#[derive(Debug)]
pub(crate) struct Setting {
    /// limitador's server, where there is one.
    pub(crate) limitador: Option<PathBuf>,
    /// The rows to measure, in order.
    pub(crate) rows: Vec<Row>,
    /// Turns of each side.
    pub(crate) rounds: usize,
    /// The length of a turn.
    pub(crate) turn: Duration,
    /// The length of the soak.
    pub(crate) soak: Duration,
    /// The server that only answers.
    pub(crate) bare_server: PathBuf,
}

impl Setting {
    /// # Errors
    /// When a program isn't there.
    pub(crate) fn new(arguments: &Arguments) -> Result<Self> {
        if let Some(limitador) = &arguments.limitador {
            ensure!(limitador.is_file(), "--limitador: there is no {}", limitador.display());
        }
        let bare_server = env::current_exe().context("finding this program")?.with_file_name("bare-server");
        ensure!(
            bare_server.is_file(),
            "there is no {}: run `cargo xtask bench`, which builds it",
            bare_server.display()
        );
        let mut rows = arguments.only.clone();
        if rows.is_empty() {
            rows = Row::ALL.to_vec();
        }
        rows.sort_unstable();
        rows.dedup();
        Ok(Self {
            limitador: arguments.limitador.clone(),
            rows,
            rounds: arguments.rounds as usize,
            turn: Duration::from_secs(arguments.seconds),
            soak: Duration::from_secs(arguments.soak_seconds),
            bare_server,
        })
    }

    /// Whether any of these rows is wanted.
    pub(crate) fn wants(&self, rows: &[Row]) -> bool {
        rows.iter().any(|row| self.rows.contains(row))
    }
}
