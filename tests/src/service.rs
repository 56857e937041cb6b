//! The service under test.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context as _, Result};
use serde_json::Value;
use tempfile::TempDir;

use crate::{Client, Port, Process, Tool};

/// `sluicegate serve` as a process.
#[derive(Debug)]
pub struct Service {
    process: Option<Process>,
    port: Port,
    admin: Port,
    directory: TempDir,
}

impl Service {
    /// A ready service with this configuration (YAML); only the addresses to listen on and the store's URL are
    /// replaced.
    ///
    /// # Errors
    /// When the binary is missing, refuses the configuration, or doesn't get ready.
    pub async fn start(config: &str, store_url: &str) -> Result<Self> {
        Self::start_on(Port::lease()?, Port::lease()?, config, store_url).await
    }

    /// The same on ports of the caller's.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn start_on(port: Port, admin: Port, config: &str, store_url: &str) -> Result<Self> {
        let mut service = Self::configured(port, admin, config, store_url)?;
        service.restart().await?;
        Ok(service)
    }

    /// A service that answers; its store may be down.
    ///
    /// # Errors
    /// When the binary is missing, refuses the configuration, or doesn't answer.
    pub async fn start_unready(config: &str, store_url: &str) -> Result<Self> {
        let mut service = Self::configured(Port::lease()?, Port::lease()?, config, store_url)?;
        service.spawn("/healthz").await?;
        Ok(service)
    }

    /// Starts the service again, on the same port and with the same configuration.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.spawn("/readyz").await
    }

    /// Kills the service: connections are refused from now on.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// What the service logged so far.
    ///
    /// # Errors
    /// When there is no log.
    pub fn log(&self) -> Result<String> {
        Ok(fs::read_to_string(self.directory.path().join("sluicegate.log"))?)
    }

    /// The process, to signal it or wait for its end.
    ///
    /// # Panics
    /// When the service was killed.
    pub fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a running service")
    }

    /// The port of the data plane.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// The port of the admin listener.
    #[must_use]
    pub const fn admin_port(&self) -> u16 {
        self.admin.number()
    }

    fn configured(port: Port, admin: Port, config: &str, store_url: &str) -> Result<Self> {
        let config = overlay(config, port.number(), admin.number(), store_url)?;
        let service = Self { process: None, port, admin, directory: tempfile::tempdir()? };
        fs::write(service.config(), config)?;
        Ok(service)
    }

    /// Starts the process, and waits until `path` is answered with 200.
    async fn spawn(&mut self, path: &str) -> Result<()> {
        self.kill();
        let mut command = Command::new(Tool::Service.path()?);
        command.args(["serve", "--config"]).arg(self.config());
        let mut process = Process::spawn("sluicegate", &mut command, &self.directory.path().join("sluicegate.log"))?;
        let client = Client::new(self.port())?;
        process.ready(async || client.get(path).await.is_ok_and(|answer| answer.status == 200)).await?;
        self.process = Some(process);
        Ok(())
    }

    /// The configuration file, as the service got it.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("sluicegate.yaml")
    }
}

/// JSON is YAML too, so the service reads the result as it reads a user's file.
fn overlay(config: &str, port: u16, admin_port: u16, store_url: &str) -> Result<String> {
    let mut config: Value = serde_saphyr::from_str(config).context("the service's configuration is not YAML")?;
    config["listen"] = format!("127.0.0.1:{port}").into();
    config["admin"]["listen"] = format!("127.0.0.1:{admin_port}").into();
    config["store"]["url"] = store_url.into();
    Ok(config.to_string())
}
