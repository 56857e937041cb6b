//! `bench/RESULTS.md`.

use std::fs;

use anyhow::{Context as _, Result};
use sluicegate_tests::repository;

use crate::{figure::Line, load::CONNECTIONS, setting::Setting};

const PATH: &str = "bench/RESULTS.md";

/// The whole file.
pub(crate) fn render(setting: &Setting, machine: &str, lines: &[Line]) -> String {
    let mut lines: Vec<&Line> = lines.iter().filter(|line| setting.rows.contains(&line.row())).collect();
    lines.sort_by_key(|line| line.row());
    let table: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let (rounds, turn) = (setting.rounds, setting.turn.as_secs());
    format!(
        "# Sluicegate measured beside what else there is

By `cargo xtask bench`; [README.md](README.md) says how to read this and what each row compares.

{machine}
Each ratio is the median of {rounds} rounds (least–most), both sides by turns of {turn} s after 1 s to warm up, with
{CONNECTIONS} connections or streams. Load generator, service, Redis, proxy and application share the machine, and nothing is
pinned to a core. The last two columns are of this machine alone, medians likewise.

| row | scenario | beside | ratio | goal | | this machine | the other side |
|---|---|---|--:|--:|---|--:|--:|
{table}"
    )
}

/// Writes the file.
///
/// # Errors
/// When it can't be written.
pub(crate) fn write(report: &str) -> Result<()> {
    fs::write(repository(PATH), report).with_context(|| format!("writing {PATH}"))?;
    eprintln!("wrote {PATH}");
    Ok(())
}
