//! The server that only answers, as a process.

use std::{fs, path::Path, process::Command};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Port, Process};
use tempfile::TempDir;

/// `bare-server`, which parses checks and answers each with the same bytes. It also plays the application behind Envoy.
#[derive(Debug)]
pub(crate) struct Bare {
    process: Process,
    port: Port,
    _folder: TempDir,
}

impl Bare {
    /// A server that gives this answer of Sluicegate's to every check.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub(crate) async fn answering(program: &Path, answer: &Answer) -> Result<Self> {
        ensure!(answer.status == 200, "the answer to repeat is {}", answer.status);
        // Those that a server adds itself would be there twice.
        let own = ["date", "content-length", "connection", "transfer-encoding"];
        let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        let headers: Vec<_> =
            headers.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))).collect();
        Self::run(program, &json!({ "headers": headers, "body": String::from_utf8_lossy(&answer.body) })).await
    }

    /// A server for other things than checks.
    ///
    /// # Errors
    /// When it doesn't answer.
    pub(crate) async fn upstream(program: &Path) -> Result<Self> {
        Self::run(program, &json!({ "headers": [], "body": "" })).await
    }

    async fn run(program: &Path, answer: &Value) -> Result<Self> {
        let (port, folder) = (Port::lease()?, TempDir::new()?);
        let file = folder.path().join("answer.json");
        fs::write(&file, answer.to_string())?;
        let mut command = Command::new(program);
        command.arg(port.number().to_string()).arg(file);
        let mut process = Process::spawn("bare-server", &mut command, &folder.path().join("bare.log"))?;
        let client = Client::new(port.number())?;
        process.ready(async || client.get("/").await.is_ok_and(|answer| answer.status == 200)).await?;
        Ok(Self { process, port, _folder: folder })
    }

    pub(crate) const fn port(&self) -> u16 {
        self.port.number()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }
}
