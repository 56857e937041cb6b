//! Prometheus, as it would run beside the service.

use std::{fs, process::Command};

use anyhow::{Context as _, Result, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use tempfile::TempDir;

use crate::{Client, Port, Process, Tool};

/// A real Prometheus with its data in a directory of its own.
#[derive(Debug)]
pub struct Prometheus {
    _process: Process,
    client: Client,
    _port: Port,
    _directory: TempDir,
}

impl Prometheus {
    /// A Prometheus that is ready, with this configuration, next to which these rules stand as `alerts.yml`.
    ///
    /// # Errors
    /// When it is missing, or refuses its configuration.
    pub async fn start(config: &Value, rules: &Value) -> Result<Self> {
        let (port, directory) = (Port::lease()?, tempfile::tempdir()?);
        // JSON is YAML too.
        let file = directory.path().join("prometheus.yml");
        fs::write(&file, config.to_string())?;
        fs::write(directory.path().join("alerts.yml"), rules.to_string())?;
        let mut command = Command::new(Tool::Prometheus.path()?);
        command.arg("--config.file").arg(file).arg("--storage.tsdb.path").arg(directory.path().join("data"));
        command.arg(format!("--web.listen-address=127.0.0.1:{}", port.number()));
        let mut process = Process::spawn("prometheus", &mut command, &directory.path().join("prometheus.log"))?;
        let client = Client::new(port.number())?;
        process.ready(async || client.get("/-/ready").await.is_ok_and(|answer| answer.status == 200)).await?;
        Ok(Self { _process: process, client, _port: port, _directory: directory })
    }

    /// The series that an expression is now, each with its `metric` (the labels) and its `value`.
    ///
    /// # Errors
    /// When the expression is wrong; the message is Prometheus's.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>> {
        let expression = utf8_percent_encode(expression, NON_ALPHANUMERIC);
        let data = self.ask(&format!("/api/v1/query?query={expression}")).await?;
        ensure!(data["resultType"] == "vector", "{data} is no vector");
        data["result"].as_array().cloned().context("no result")
    }

    /// The alerts that are pending or fire, each with its `labels`, `annotations` and `state`.
    ///
    /// # Errors
    /// When Prometheus doesn't answer.
    pub async fn alerts(&self) -> Result<Vec<Value>> {
        self.ask("/api/v1/alerts").await?["alerts"].as_array().cloned().context("no alerts")
    }

    async fn ask(&self, path: &str) -> Result<Value> {
        let mut answer = self.client.get(path).await?.json();
        ensure!(answer["status"] == "success", "{answer}");
        Ok(answer["data"].take())
    }
}
