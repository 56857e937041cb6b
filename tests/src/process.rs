//! One child process with its log.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
pub use rustix::process::Signal;
use rustix::process::{Pid, kill_process};

use crate::until;

/// How much of a log is shown when a test fails, in lines.
const TAIL: usize = 80;

/// A running child process: killed on drop, its log printed when that happens in a failing test.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command` with standard output and error appended to the file `log`.
    ///
    /// # Errors
    /// When the program can't be started.
    pub fn spawn(name: impl Into<String>, command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::options().create(true).append(true).open(log)?;
        command.stdin(Stdio::null()).stdout(file);
        Self::spawn_with(name, command, log)
    }

    /// The same with what `command` has for standard input and output.
    ///
    /// # Errors
    /// As [`Process::spawn`].
    pub fn spawn_with(name: impl Into<String>, command: &mut Command, log: &Path) -> Result<Self> {
        let name = name.into();
        let file = File::options().create(true).append(true).open(log)?;
        let child = command
            .stderr(file)
            .spawn()
            .with_context(|| format!("can't start {name} ({})", Path::new(command.get_program()).display()))?;
        Ok(Self { name, child, log: log.to_owned() })
    }

    /// The process's number.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Errors
    /// When the process has ended already.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal).with_context(|| format!("can't signal {}", self.name))
    }

    /// Kills the process, stopped or not, and returns when it is gone.
    pub fn kill(&mut self) {
        // An error means that it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The exit status, none while the process runs.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits until the process has ended by itself.
    ///
    /// # Errors
    /// When it still runs at the deadline.
    pub async fn exited(&mut self, deadline: Duration) -> Result<ExitStatus> {
        until(&format!("{} to exit", self.name), deadline, async || self.exit_status()).await
    }

    /// Waits until `probe` succeeds, and fails with the log's end when the process ends first or the deadline passes.
    ///
    /// # Errors
    /// See above.
    pub async fn ready(&mut self, mut probe: impl AsyncFnMut() -> bool) -> Result<()> {
        let mut ended = None;
        let what = format!("{} to answer", self.name);
        let waited = until(&what, Duration::from_secs(20), async || {
            ended = self.exit_status();
            (ended.is_some() || probe().await).then_some(())
        })
        .await;
        match ended {
            Some(status) => Err(anyhow::anyhow!("{} ended with {status}\n{}", self.name, self.log_tail())),
            None => waited.with_context(|| self.log_tail()),
        }
    }

    /// The memory that the process has in use now, in KiB.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn resident_kib(&self) -> Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let size = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        size.with_context(|| format!("{} has ended", self.name))?.parse().context("VmRSS is no number")
    }

    /// The kernel's table of the process's mappings of memory.
    ///
    /// # Errors
    /// When the process has ended.
    pub fn memory_map(&self) -> Result<String> {
        fs::read_to_string(format!("/proc/{}/maps", self.child.id()))
            .with_context(|| format!("{} has ended", self.name))
    }

    /// What the process has written so far.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The last lines of the log under a heading.
    #[must_use]
    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<_> = log.lines().collect();
        let tail = &lines[lines.len().saturating_sub(TAIL)..];
        format!("--- last lines of {} ---\n{}\n", self.name, tail.join("\n"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            eprintln!("{}", self.log_tail());
        }
    }
}
