//! Running programs: a failure is one line that names the command.

use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};

use crate::progress::Step;

/// How often a long step shows that it is alive.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// How much of a failed step's log is shown.
const LOG_LINES: usize = 25;

/// Runs with this terminal's output and no input.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.stdin(Stdio::null()).status().with_context(|| describe(command))?;
    check(command, status)
}

/// Becomes `command`, so that Ctrl-C reaches it alone and its clean-up is waited for. Returns only when that fails.
pub(crate) fn replace(command: &mut Command) -> Result<()> {
    Err(command.stdin(Stdio::null()).exec()).with_context(|| describe(command))
}

/// Runs and gives what was printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().with_context(|| describe(command))?;
    check(command, output.status)?;
    String::from_utf8(output.stdout).with_context(|| format!("{} printed something else than text", describe(command)))
}

/// Runs with the output in a log, telling now and then how far it is. When it fails, the end of the log is shown.
pub(crate) fn run_logged(step: &Step, log: &Path, command: &mut Command) -> Result<()> {
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    let errors = file.try_clone().context("sharing the log")?;
    let mut child =
        command.stdin(Stdio::null()).stdout(file).stderr(errors).spawn().with_context(|| describe(command))?;

    let (ended, status) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait()));
    let status = loop {
        match status.recv_timeout(HEARTBEAT) {
            Ok(status) => break status.with_context(|| describe(command))?,
            Err(mpsc::RecvTimeoutError::Timeout) => step.heartbeat(last_line(log).as_deref().unwrap_or("")),
            Err(mpsc::RecvTimeoutError::Disconnected) => bail!("{} could not be waited for", describe(command)),
        }
    };
    if !status.success() {
        let text = fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<_> = text.lines().collect();
        for line in lines.iter().skip(lines.len().saturating_sub(LOG_LINES)) {
            eprintln!("  | {line}");
        }
    }
    check(command, status)
}

/// The program `name`, where a shell would find it.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    find_all(name).into_iter().next()
}

/// All programs of this name on `PATH`, in its order.
pub(crate) fn find_all(name: &str) -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).filter(|path| path.is_file()).collect()
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    ensure!(status.success(), "{} failed ({status})", describe(command));
    Ok(())
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let words: Vec<_> = [program].into_iter().chain(command.get_args()).map(OsStr::to_string_lossy).collect();
    format!("`{}`", words.join(" "))
}

fn last_line(log: &Path) -> Option<String> {
    let text = fs::read(log).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_run(program: &str, arguments: &[&str], expected: &str) {
        let folder = tempfile::tempdir().unwrap();
        let result =
            run_logged(&Step::begin("step"), &folder.path().join("log"), Command::new(program).args(arguments));
        assert_eq!(result.err().map(|error| error.to_string()).unwrap_or_default(), expected);
    }

    #[test]
    fn a_failure_names_the_command() {
        check_run("true", &[], "");
        check_run("false", &["a", "b c"], "`false a b c` failed (exit status: 1)");
        check_run("/no/such/program", &["x"], "`program x`");
    }
}
