//! The service under test.

use std::{fs, io, net::TcpListener, os::fd::OwnedFd, path::PathBuf, process::Command};

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
    /// What data and admin listener listen at, where the harness holds their sockets.
    sockets: Option<[TcpListener; 2]>,
    /// Processes started so far.
    processes: u32,
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

    /// The same, at sockets that are the harness's and that every process of this service is passed.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn start_at_sockets(config: &str, store_url: &str) -> Result<Self> {
        let mut service = Self::configured(Port::lease()?, Port::lease()?, config, store_url)?;
        let listen = |port: &Port| TcpListener::bind(("127.0.0.1", port.number()));
        service.sockets = Some([listen(&service.port)?, listen(&service.admin)?]);
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

    /// A ready service whose data listener this process can't speak to: it is asked on its admin listener.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn start_by_admin(config: &str, store_url: &str) -> Result<Self> {
        let mut service = Self::configured(Port::lease()?, Port::lease()?, config, store_url)?;
        let mut process = service.launch()?;
        let client = Client::new(service.admin_port())?;
        process.ready(async || client.get("/readyz").await.is_ok_and(|answer| answer.status == 200)).await?;
        service.process = Some(process);
        Ok(service)
    }

    /// Starts the service again, on the same port and with the same configuration.
    ///
    /// # Errors
    /// As [`Service::start`].
    pub async fn restart(&mut self) -> Result<()> {
        self.spawn("/readyz").await
    }

    /// Starts a second process beside the first, which needs sockets or ports that they can share, and gives back the
    /// first. From then on this is the second.
    ///
    /// # Errors
    /// When it doesn't come to listen.
    pub async fn replace(&mut self) -> Result<Process> {
        let mut second = self.launch()?;
        let log = self.log_file(self.processes - 1);
        // Asked for its health, the first might answer.
        second.ready(async || fs::read_to_string(&log).is_ok_and(|log| log.contains("listening"))).await?;
        self.process.replace(second).context("a running service")
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
        Ok((0..self.processes).map(|number| fs::read_to_string(self.log_file(number))).collect::<io::Result<_>>()?)
    }

    fn log_file(&self, number: u32) -> PathBuf {
        self.directory.path().join(format!("sluicegate-{number}.log"))
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
        let directory = tempfile::tempdir()?;
        let service = Self { process: None, port, admin, directory, sockets: None, processes: 0 };
        fs::write(service.config(), config)?;
        Ok(service)
    }

    /// Starts the process, and waits until `path` is answered with 200.
    async fn spawn(&mut self, path: &str) -> Result<()> {
        self.kill();
        let mut process = self.launch()?;
        let client = Client::new(self.port())?;
        process.ready(async || client.get(path).await.is_ok_and(|answer| answer.status == 200)).await?;
        self.process = Some(process);
        Ok(())
    }

    /// Starts a process with a log of its own.
    fn launch(&mut self) -> Result<Process> {
        let (service, log) = (Tool::Service.path()?, self.log_file(self.processes));
        self.processes += 1;
        let Some([data, admin]) = &self.sockets else {
            let mut command = Command::new(service);
            command.args(["serve", "--config"]).arg(self.config());
            return Process::spawn("sluicegate", &mut command, &log);
        };
        // A shell puts them where they belong and knows the number of the process, both without unsafe code.
        let mut command = Command::new("/bin/sh");
        command.args(["-c", PASS_SOCKETS, "sh"]).arg(service).args(["serve", "--config"]).arg(self.config());
        command.env("LISTEN_FDS", "2").env("LISTEN_FDNAMES", "data:admin");
        command.stdin(OwnedFd::from(data.try_clone()?)).stdout(OwnedFd::from(admin.try_clone()?));
        Process::spawn_with("sluicegate", &mut command, &log)
    }

    /// The configuration file, as the service got it.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.directory.path().join("sluicegate.yaml")
    }
}

/// Turns standard input and output into the sockets 3 and 4, as `sd_listen_fds(3)` has them.
const PASS_SOCKETS: &str = "exec 3<&0 4>&1 0</dev/null 1>&2 && export LISTEN_PID=$$ && exec \"$@\"";

/// JSON is YAML too, so the service reads the result as it reads a user's file.
fn overlay(config: &str, port: u16, admin_port: u16, store_url: &str) -> Result<String> {
    let mut config: Value = serde_saphyr::from_str(config).context("the service's configuration is not YAML")?;
    config["listen"] = format!("127.0.0.1:{port}").into();
    config["admin"]["listen"] = format!("127.0.0.1:{admin_port}").into();
    config["store"]["url"] = store_url.into();
    Ok(config.to_string())
}
