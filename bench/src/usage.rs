//! The CPU time and the memory of other processes.

use anyhow::{Context as _, Result};
use procfs::process::Process;

/// User and system time that a process has used since it started, in µs, to the kernel's tick of (mostly) 10 ms.
///
/// # Errors
/// When the process has ended.
pub(crate) fn cpu_us(pid: u32) -> Result<u64> {
    let stat = of(pid)?.stat().with_context(|| format!("process {pid}"))?;
    Ok((stat.utime + stat.stime) * 1_000_000 / procfs::ticks_per_second())
}

/// The memory that a process has in use, in bytes.
///
/// # Errors
/// When the process has ended.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64> {
    let status = of(pid)?.status().with_context(|| format!("process {pid}"))?;
    Ok(status.vmrss.with_context(|| format!("process {pid} has ended"))? * 1024)
}

fn of(pid: u32) -> Result<Process> {
    Process::new(pid.cast_signed()).with_context(|| format!("process {pid}"))
}
