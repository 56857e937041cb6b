//! What the kernel knows of this process, under the names that all Prometheus clients use.

use std::{fmt, time::SystemTime};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{counter::ConstCounter, gauge::ConstGauge},
};

/// Reads `/proc` at each scrape; elsewhere than on Linux there is only when the process started.
#[derive(Debug)]
pub(super) struct ProcessMetrics {
    started: SystemTime,
}

impl ProcessMetrics {
    pub(super) fn new() -> Self {
        Self { started: SystemTime::now() }
    }
}

impl Collector for ProcessMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let started_s = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let mut add = |name: &str, help: &str, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
        };
        add("start_time_seconds", "When the process started, in seconds since 1970", &ConstGauge::new(started_s))?;
        let Some(usage) = usage() else { return Ok(()) };
        add("cpu_seconds", "CPU time used, of the user and the system", &ConstCounter::new(usage.cpu_s))?;
        add("resident_memory_bytes", "Memory in use", &ConstGauge::new(usage.resident_bytes))?;
        add("threads", "Threads", &ConstGauge::new(usage.threads))?;
        add("open_fds", "Open file descriptors", &ConstGauge::new(usage.open_fds))?;
        if let Some(max_fds) = usage.max_fds {
            add("max_fds", "The most file descriptors that may be open", &ConstGauge::new(max_fds))?;
        }
        Ok(())
    }
}

struct Usage {
    cpu_s: f64,
    resident_bytes: u64,
    threads: i64,
    open_fds: u64,
    /// None where there is no bound.
    max_fds: Option<u64>,
}

#[cfg(target_os = "linux")]
fn usage() -> Option<Usage> {
    use procfs::process::{LimitValue, Process};

    let process = Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let max_fds = match process.limits().ok()?.max_open_files.soft_limit {
        LimitValue::Unlimited => None,
        LimitValue::Value(most) => Some(most),
    };
    Some(Usage {
        cpu_s: (stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64,
        resident_bytes: stat.rss * procfs::page_size(),
        threads: stat.num_threads,
        open_fds: process.fd_count().ok()? as u64,
        max_fds,
    })
}

#[cfg(not(target_os = "linux"))]
fn usage() -> Option<Usage> {
    None
}
