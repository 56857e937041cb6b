//! The engine that runs containers.

use std::{
    env,
    fs::{self, File},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use super::consent;
use crate::{
    process,
    progress::Step,
    setup::apt::{self, NoServices},
    tools_dir::ToolsDir,
};

/// How long an engine may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// One that runs already, or one of ours.
pub(super) enum Engine {
    /// Whoever runs it may have images and containers of their own there.
    Theirs,
    /// Started for this run, with its data in `.tools/docker`.
    Ours(Daemon),
}

impl Engine {
    /// The one that `docker` reaches, or else Debian's, installed after asking.
    pub(super) fn find(tools: &ToolsDir) -> Result<Self> {
        if process::find_all("docker").iter().any(|docker| reaches(Command::new(docker))) {
            return Ok(Self::Theirs);
        }
        if process::find("dockerd").is_none() {
            consent::ask("a Docker engine (Debian's docker.io, some 300 MB)")?;
            let _no_service = NoServices::forbid()?;
            apt::ensure("dockerd", "docker.io", tools)?;
        }
        apt::ensure("iptables", "iptables", tools)?;
        Ok(Self::Ours(Daemon::start(tools)?))
    }

    pub(super) const fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }

    pub(super) fn apply(&self, command: &mut Command) {
        if let Self::Ours(daemon) = self {
            daemon.apply(command);
        }
    }
}

/// `dockerd`. Dropped, it ends, and its containers with it.
pub(super) struct Daemon {
    child: Child,
    /// Short, since the path of a socket may not be long.
    run_dir: PathBuf,
}

impl Daemon {
    fn start(tools: &ToolsDir) -> Result<Self> {
        let step = Step::begin("dockerd");
        let run_dir = env::temp_dir().join(format!("sluicegate-docker-{}", std::process::id()));
        fs::create_dir_all(&run_dir).with_context(|| format!("creating {}", run_dir.display()))?;
        let path = tools.log("dockerd");
        let log = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let mut dockerd = Command::new("dockerd");
        dockerd.arg("--data-root").arg(tools.join("docker")).arg("--exec-root").arg(run_dir.join("exec"));
        dockerd.arg("--pidfile").arg(run_dir.join("pid")).arg("--host").arg(socket(&run_dir));
        dockerd.stdin(Stdio::null()).stdout(log.try_clone().context("sharing the log")?).stderr(log);
        let mut daemon = Self { child: dockerd.spawn().context("starting dockerd")?, run_dir };
        let start = Instant::now();
        loop {
            let mut docker = Command::new("docker");
            daemon.apply(&mut docker);
            if reaches(docker) {
                break;
            }
            if daemon.child.try_wait()?.is_some() || start.elapsed() > PATIENCE {
                let log = fs::read_to_string(&path).unwrap_or_default();
                let end: Vec<_> = log.lines().rev().take(5).collect();
                bail!("dockerd doesn't run, which needs root and a kernel that allows it:\n{}", end.join("\n"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        step.end();
        Ok(daemon)
    }

    fn apply(&self, command: &mut Command) {
        command.env("DOCKER_HOST", socket(&self.run_dir)).env_remove("DOCKER_CONTEXT");
    }
}

impl Drop for Daemon {
    /// By SIGTERM, with which it ends its containers and gives back its mounts.
    fn drop(&mut self) {
        let pid = self.child.id().to_string();
        if process::run(Command::new("kill").args(["-TERM", &pid])).is_ok() {
            let start = Instant::now();
            while matches!(self.child.try_wait(), Ok(None)) && start.elapsed() < PATIENCE {
                thread::sleep(Duration::from_millis(50));
            }
        }
        let _ended = self.child.kill().and_then(|()| self.child.wait());
        let _removed = fs::remove_dir_all(&self.run_dir);
    }
}

fn socket(run_dir: &std::path::Path) -> String {
    format!("unix://{}", run_dir.join("docker.sock").display())
}

fn reaches(mut docker: Command) -> bool {
    docker.args(["version", "--format", "{{.Server.Version}}"]);
    docker.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    docker.status().is_ok_and(|status| status.success())
}
