//! The compose project under a name of its own, on ports of its own.

use std::{
    env,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use sluicegate_tests::{Client, Port, Stage, repository, until};

/// How long containers may take to be healthy.
const HEALTHY: Duration = Duration::from_secs(120);

/// The project, up. Dropped, its containers, networks and volumes are gone.
pub(crate) struct Project {
    name: String,
    envoy: Port,
    data: Port,
    admin: Port,
    prometheus: Port,
    is_down: bool,
}

impl Project {
    /// Builds the images and starts everything but Grafana, of which there may be no image.
    pub(crate) async fn up() -> Result<Self> {
        let port = Port::lease;
        let name = format!("sluicegate-test-{}", std::process::id());
        let project = Self { name, envoy: port()?, data: port()?, admin: port()?, prometheus: port()?, is_down: false };
        // Checked even where a service isn't started.
        project.compose(&["--profile", "observe", "config", "--quiet"])?;
        step("building the images");
        project.compose(&["build"])?;
        step("starting the containers");
        project.compose(&["--profile", "observe", "up", "--detach", "envoy", "prometheus"])?;
        project.until_healthy(&["envoy", "sluicegate-1", "sluicegate-2", "redis"]).await?;
        Ok(project)
    }

    pub(crate) fn data(&self) -> Result<Client> {
        Client::new(self.data.number())
    }

    pub(crate) fn admin(&self) -> Result<Client> {
        Client::new(self.admin.number())
    }

    pub(crate) fn prometheus(&self) -> Result<Client> {
        Client::new(self.prometheus.number())
    }

    /// Waits until these services say that they are.
    pub(crate) async fn until_healthy(&self, services: &[&str]) -> Result<()> {
        for service in services {
            let what = format!("{service} to be healthy");
            let healthy = until(&what, HEALTHY, async || {
                let container = self.inspect(service).ok()?;
                (container["State"]["Health"]["Status"] == "healthy").then_some(())
            });
            if let Err(error) = healthy.await {
                bail!("{error:#}:\n{}", self.compose(&["logs", "--tail", "40", service]).unwrap_or_default());
            }
        }
        Ok(())
    }

    /// What Docker knows of a service's container.
    pub(crate) fn inspect(&self, service: &str) -> Result<Value> {
        let container = self.container(service)?;
        let text = docker(&["inspect", &container])?;
        let mut found: Vec<Value> = serde_json::from_str(&text)?;
        found.pop().with_context(|| format!("{service} has no container"))
    }

    /// The name of one of the project's networks.
    pub(crate) fn network(&self, name: &str) -> String {
        format!("{}_{name}", self.name)
    }

    pub(crate) fn container(&self, service: &str) -> Result<String> {
        let id =
            self.compose(&["ps", "--all", "--quiet", service]).or_else(|_| self.compose(&["ps", "-q", service]))?;
        let id = id.trim();
        ensure!(!id.is_empty(), "{service} has no container");
        Ok(id.to_owned())
    }

    /// `docker compose WORDS`, and what it printed.
    pub(crate) fn compose(&self, words: &[&str]) -> Result<String> {
        let compose = self.compose_words()?;
        let mut command = Command::new(&compose[0]);
        self.environment(command.args(&compose[1..]).args(words).current_dir(repository(".")));
        output(&mut command)
    }

    /// How compose is called for this project: a program and its first arguments.
    pub(crate) fn compose_words(&self) -> Result<Vec<String>> {
        let compose = env::var("SLUICEGATE_COMPOSE")
            .context("SLUICEGATE_COMPOSE is not set: run `cargo xtask test --compose`, which sets it")?;
        let (program, rest) = compose.split_once(' ').unwrap_or((&compose, ""));
        let mut words = vec![resolved(program)];
        words.extend(rest.split_terminator(' ').map(str::to_owned));
        words.extend(["--project-name".to_owned(), self.name.clone()]);
        Ok(words)
    }

    /// Tells compose the project's ports.
    pub(crate) fn environment(&self, command: &mut Command) {
        for (variable, _, port) in self.ports() {
            command.env(variable, port.number().to_string());
        }
    }

    /// A text that names the ports of `compose.yaml`, with this project's in their place.
    pub(crate) fn at_its_ports(&self, text: &str) -> String {
        self.ports().iter().fold(text.to_owned(), |text, (_, usual, port)| {
            text.replace(&format!("127.0.0.1:{usual}"), &format!("127.0.0.1:{}", port.number()))
        })
    }

    /// Each port with the variable that sets it and what it is otherwise.
    fn ports(&self) -> [(&'static str, u16, &Port); 4] {
        [
            ("ENVOY_PORT", 10_000, &self.envoy),
            ("DATA_PORT", 8080, &self.data),
            ("ADMIN_PORT", 8081, &self.admin),
            ("PROMETHEUS_PORT", 9090, &self.prometheus),
        ]
    }

    /// Takes everything down, and sees that nothing is left.
    pub(crate) fn down(mut self) -> Result<()> {
        step("taking everything down");
        self.take_down()?;
        let filter = format!("label=com.docker.compose.project={}", self.name);
        for kind in ["container", "network", "volume"] {
            let all: &[&str] = if kind == "container" { &["--all"] } else { &[] };
            let left = docker(&[&[kind, "ls", "--quiet", "--filter", &filter], all].concat())?;
            ensure!(left.trim().is_empty(), "{kind}s of the project are left: {left}");
        }
        Ok(())
    }

    fn take_down(&mut self) -> Result<()> {
        self.is_down = true;
        self.compose(&["--profile", "observe", "down", "--volumes", "--timeout", "20"]).map(drop)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        if !self.is_down {
            step("the logs of the containers follow");
            eprintln!("{}", self.compose(&["logs", "--tail", "40"]).unwrap_or_else(|error| format!("{error:#}")));
            if let Err(error) = self.take_down() {
                eprintln!("{error:#}");
            }
        }
    }
}

impl Stage for Project {
    fn client(&self) -> Result<Client> {
        Client::new(self.envoy.number())
    }

    fn expiring_keys(&mut self) -> Result<usize> {
        let redis = |words: &[&str]| self.compose(&[&["exec", "-T", "redis", "redis-cli"], words].concat());
        let keys = redis(&["--scan"])?;
        for key in keys.lines() {
            ensure!(redis(&["pttl", key])?.trim() != "-1", "{key} never expires");
        }
        Ok(keys.lines().count())
    }

    async fn stop_store(&mut self) -> Result<()> {
        self.compose(&["kill", "redis"]).map(drop)
    }

    async fn start_store(&mut self) -> Result<()> {
        self.compose(&["start", "redis"])?;
        self.until_healthy(&["redis", "sluicegate-1", "sluicegate-2"]).await
    }
}

/// Says on the terminal where the run is: some steps take minutes.
pub(crate) fn step(what: &str) {
    eprintln!("compose: {what}");
}

/// `docker WORDS` in the root of the repository, and what it printed.
pub(crate) fn docker(words: &[&str]) -> Result<String> {
    output(Command::new("docker").args(words).current_dir(repository(".")))
}

/// The path of a program, so that it is the same under another `PATH`.
fn resolved(program: &str) -> String {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|folder| folder.join(program)).find(|program| program.is_file());
    found.map_or_else(|| program.to_owned(), |program| program.display().to_string())
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{command:?}: {}\n{printed}\n{errors}", output.status);
    Ok(printed)
}
