//! Envoy with the filter under test.

mod health;
mod listener_file;
mod overlay;
mod wasm_memory;

use std::{fs, process::Command, thread};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

pub use overlay::Overlay;

use crate::{Client, Port, Process, Tool, interrupt::is_interrupted, quiet::starting};

/// A real Envoy that runs `envoy/envoy.yaml` under an [`Overlay`]. Unless its test has failed already, it fails on drop
/// when the filter trapped or a request hung.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    ingress: Port,
    admin: Port,
    directory: TempDir,
}

impl Envoy {
    /// A running Envoy on free ports.
    ///
    /// # Errors
    /// When Envoy or the filter is missing, or Envoy refuses the configuration.
    pub async fn start(overlay: &Overlay) -> Result<Self> {
        Self::start_on(Port::lease()?, Port::lease()?, overlay).await
    }

    /// The same on ports of the caller's.
    ///
    /// # Errors
    /// As [`Envoy::start`].
    pub async fn start_on(ingress: Port, admin: Port, overlay: &Overlay) -> Result<Self> {
        let config = overlay.apply(ingress.number(), admin.number())?;
        let workers = overlay.concurrency().to_string();
        Self::run(ingress, admin, tempfile::tempdir()?, &config, &["--concurrency", &workers]).await
    }

    /// An Envoy that reads its listener from a file and follows its changes, see [`Envoy::push`]. Connections of an old
    /// listener are asked to end with their next answer rather than in the course of ten minutes.
    ///
    /// # Errors
    /// As [`Envoy::start`].
    pub async fn start_following(overlay: &Overlay) -> Result<Self> {
        let (ingress, admin, directory) = (Port::lease()?, Port::lease()?, tempfile::tempdir()?);
        let mut config = overlay.apply(ingress.number(), admin.number())?;
        listener_file::move_out(&mut config, directory.path())?;
        let workers = overlay.concurrency().to_string();
        Self::run(ingress, admin, directory, &config, &["--drain-strategy", "immediate", "--concurrency", &workers])
            .await
    }

    /// Gives an Envoy that follows a file another listener. Whether it takes it is in its statistics
    /// (`listener_manager.lds.update_success` and `update_rejected`).
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn push(&self, overlay: &Overlay) -> Result<()> {
        let mut config = overlay.apply(self.port(), self.admin_port())?;
        listener_file::move_out(&mut config, self.directory.path())
    }

    async fn run(ingress: Port, admin: Port, directory: TempDir, config: &Value, arguments: &[&str]) -> Result<Self> {
        let _starting = starting().await;
        let path = directory.path().join("envoy.json");
        fs::write(&path, config.to_string())?;
        let mut command = Command::new(Tool::Envoy.path()?);
        // Hot restart shares memory between all Envoys of a machine.
        command.args(["--disable-hot-restart", "--log-level", "warning"]);
        command.args(["--component-log-level", "wasm:info", "-c"]).arg(&path).args(arguments);
        let mut process = Process::spawn("envoy", &mut command, &directory.path().join("envoy.log"))?;
        let client = Client::new(admin.number())?;
        process
            .ready(async || {
                client.get("/ready").await.is_ok_and(|answer| answer.status == 200)
                    && tokio::net::TcpStream::connect(("127.0.0.1", ingress.number())).await.is_ok()
            })
            .await?;
        Ok(Self { process, ingress, admin, directory })
    }

    /// Lets Envoy judge the configuration as it stands, with the filter's path alone replaced: the filter reads its
    /// own part too.
    ///
    /// # Errors
    /// With what Envoy said against it.
    pub fn validate(overlay: &Overlay) -> Result<()> {
        let directory = tempfile::tempdir()?;
        let config = directory.path().join("envoy.json");
        fs::write(&config, overlay.apply(10_000, 9_901)?.to_string())?;
        let output = Command::new(Tool::Envoy.path()?).args(["--mode", "validate", "-c"]).arg(&config).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// The port that clients use.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.ingress.number()
    }

    /// The port of the admin interface.
    #[must_use]
    pub const fn admin_port(&self) -> u16 {
        self.admin.number()
    }

    /// The process and its log.
    #[must_use]
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// Fails when the filter trapped or a request hung since Envoy started.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn check_health(&self) -> Result<()> {
        health::check(self.admin_port(), &self.process.log())
    }

    /// The memory of each VM of the filter in KiB: one a worker, one of the main thread, one that the others were made
    /// from. It never shrinks.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn wasm_memories_kib(&self) -> Result<Vec<u64>> {
        wasm_memory::sizes_kib(&self.process.memory_map()?)
    }

    /// The value of a metric in the form that Prometheus reads, by its name and labels as they stand there, such as
    /// `sluicegate_requests_total{rule="api",verdict="allowed"}`; 0 when there is none.
    ///
    /// # Errors
    /// When the admin interface doesn't answer.
    pub async fn metric(&self, name: &str) -> Result<i64> {
        let answer = Client::new(self.admin_port())?.get("/stats/prometheus").await?;
        let text = String::from_utf8(answer.body).context("stats are text")?;
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        Ok(value.unwrap_or(0))
    }

    /// The sum of the counters and gauges whose name contains `part`.
    ///
    /// # Errors
    /// When the admin interface doesn't answer.
    pub async fn stat(&self, part: &str) -> Result<u64> {
        let answer = Client::new(self.admin_port())?.get("/stats").await?;
        let text = String::from_utf8(answer.body).context("stats are text")?;
        // Histograms have no single number and are left out.
        let stats = text.lines().filter_map(|line| line.split_once(": "));
        Ok(stats.filter(|(name, _)| name.contains(part)).filter_map(|(_, value)| value.parse::<u64>().ok()).sum())
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        if !thread::panicking() && !is_interrupted() {
            self.check_health().unwrap();
        }
    }
}
