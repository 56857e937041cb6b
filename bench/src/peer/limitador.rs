//! limitador's server, built outside of this repository.

use std::{fs, path::Path, process::Command};

use anyhow::{Context as _, Result};
use sluicegate_tests::{Client, Port, Process};
use tempfile::TempDir;

/// One limit by `user` that nothing reaches, as wide as the one of [`crate::rows::POLICIES`].
const LIMITS: &str = "
- namespace: bench
  max_value: 1000000000
  seconds: 86400
  conditions: []
  variables: ['descriptors[0].user']
";

/// `limitador-server` with its counters in Redis, which it asks for each decision.
#[derive(Debug)]
pub(crate) struct Limitador {
    process: Process,
    http: Port,
    grpc: Port,
    _folder: TempDir,
}

impl Limitador {
    /// A server that answers.
    ///
    /// # Errors
    /// When it doesn't.
    pub(crate) async fn start(program: &Path, redis_url: &str) -> Result<Self> {
        let (http, grpc, folder) = (Port::lease()?, Port::lease()?, TempDir::new()?);
        let limits = folder.path().join("limits.yaml");
        fs::write(&limits, LIMITS)?;
        let mut command = Command::new(program);
        command.args(["--rls-ip", "127.0.0.1", "--rls-port", &grpc.number().to_string()]);
        command.args(["--http-ip", "127.0.0.1", "--http-port", &http.number().to_string()]);
        command.arg(limits).args(["redis", redis_url]);
        let mut process = Process::spawn("limitador", &mut command, &folder.path().join("limitador.log"))?;
        let client = Client::new(http.number())?;
        process.ready(async || client.get("/status").await.is_ok_and(|answer| answer.status == 200)).await?;
        Ok(Self { process, http, grpc, _folder: folder })
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// When it can't be run.
    pub(crate) fn version(program: &Path) -> Result<String> {
        let output = Command::new(program).arg("--version").output().context("--limitador")?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(crate) const fn http_port(&self) -> u16 {
        self.http.number()
    }

    pub(crate) const fn grpc_port(&self) -> u16 {
        self.grpc.number()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}
