//! What the figures were measured on, and with.

use std::{fs, path::Path, process::Command, thread};

use anyhow::{Context as _, Result};
use procfs::FromRead as _;
use sluicegate_tests::{Tool, repository};

use crate::{peer::Limitador, setting::Setting};

/// Lines of Markdown.
///
/// # Errors
/// When the kernel doesn't say.
pub(crate) fn describe(setting: &Setting) -> Result<String> {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").context("the kernel's version")?;
    let cores = thread::available_parallelism()?;
    let memory_gib =
        procfs::Meminfo::from_file("/proc/meminfo").map(|memory| memory.mem_total >> 30).unwrap_or_default();
    let now = jiff::Timestamp::now().to_string();
    let date = now.split('T').next().unwrap_or_default();
    let commit = said("git", &["-C", &repository("").display().to_string(), "describe", "--always", "--dirty"]);
    let mut text = format!(
        "{date}, commit {commit}. {}, {cores} cores, {memory_gib} GiB, Linux {}. Load of the machine before the run: {}.\n\n",
        processor(),
        kernel.trim(),
        load()
    );
    let envoy = Tool::Envoy.path()?;
    let versions = [
        said("redis-server", &["--version"]),
        said(&envoy.display().to_string(), &["--version"])
            .rsplit("version: ")
            .next()
            .map(short_envoy)
            .unwrap_or_default(),
        said("wrk", &["-v"]),
        said("h2load", &["--version"]),
        said("oha", &["--version"]),
        limitador(setting.limitador.as_deref())?,
    ];
    text += &versions.map(|version| format!("- {version}\n")).concat();
    Ok(text)
}

/// The first line of what a program says, whatever its exit status.
fn said(program: &str, arguments: &[&str]) -> String {
    let Ok(output) = Command::new(program).args(arguments).output() else { return format!("{program}: not there") };
    let text = if output.stdout.iter().all(u8::is_ascii_whitespace) { output.stderr } else { output.stdout };
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim().to_owned()
}

/// `9e558…/1.40.0/Clean/RELEASE/BoringSSL` as `Envoy 1.40.0`.
fn short_envoy(version: &str) -> String {
    format!("Envoy {}", version.split('/').nth(1).unwrap_or(version))
}

fn limitador(program: Option<&Path>) -> Result<String> {
    program.map_or_else(|| Ok("no limitador: the rows that need it are skipped".to_owned()), Limitador::version)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    name.map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.to_owned())
}

fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
