//! Runs blocks in one bash.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Result, bail, ensure};

use super::{Block, Role, same_output};
use crate::Process;

/// How long a page may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// How many faults are told at once: what follows the first is often its consequence.
const FAULTS: usize = 8;

/// One thing that the bash does.
struct Step<'a> {
    line: usize,
    action: Action<'a>,
}

enum Action<'a> {
    Write { name: &'a str, text: &'a str },
    Run { commands: &'a str },
    Show { command: &'a str, output: &'a str },
}

pub(super) async fn run(page: &Path, blocks: &[&Block], mut shell: Command, folder: &Path) -> Result<()> {
    let steps: Vec<_> = blocks.iter().flat_map(|block| steps(block)).collect();
    let script = folder.join("script.sh");
    fs::write(&script, write(&steps, folder)?)?;
    shell.arg(&script).env("BASH_ENV", "/dev/null");
    let mut process = Process::spawn(page.display().to_string(), &mut shell, &folder.join("shell.log"))?;
    let exited = process.exited(DEADLINE).await;
    process.kill();

    let faults = steps.iter().enumerate().filter_map(|(number, step)| {
        let fault = step.judge(number, folder).err()?;
        Some(format!("{}:{}: {fault}", page.display(), step.line))
    });
    let faults: Vec<_> = faults.take(FAULTS).collect();
    ensure!(faults.is_empty(), "{}\n{}", faults.join("\n"), process.log_tail());
    ensure!(exited?.success(), "{}: bash failed\n{}", page.display(), process.log_tail());
    Ok(())
}

fn steps(block: &Block) -> Vec<Step<'_>> {
    let step = |action| Step { line: block.line, action };
    match &block.role {
        Role::Commands(commands) => vec![step(Action::Run { commands })],
        Role::Console(shown) => {
            shown.iter().map(|one| step(Action::Show { command: &one.command, output: &one.output })).collect()
        }
        Role::File { name, text } => vec![step(Action::Write { name, text })],
        Role::Text { .. } => Vec::new(),
    }
}

/// The script. What each step says is kept when the step ends: a program left in the background may go on writing.
fn write(steps: &[Step<'_>], folder: &Path) -> Result<String> {
    let mut script = "set -euo pipefail\nbegin=$PWD\nstatus=0\n".to_owned();
    for (number, step) in steps.iter().enumerate() {
        let [text, said, kept, status] =
            ["text", "said", "kept", "status"].map(|kind| quoted(&file(folder, number, kind)));
        fs::write(file(folder, number, "text"), step.text())?;
        match step.action {
            Action::Write { name, .. } => {
                let name = format!("\"$begin\"/{}", quoted(Path::new(name)));
                writeln!(script, "mkdir -p \"$(dirname {name})\"; cat {text} > {name}; echo 0 > {status}")?;
            }
            Action::Run { .. } => {
                writeln!(script, "source {text} > {said} 2>&1; echo 0 > {status}")?;
            }
            // The command may ask for the status of the one before it.
            Action::Show { .. } => {
                writeln!(script, "set +e; (exit $status); source {text} > {said} 2>&1; status=$?; set -e")?;
                writeln!(script, "cat {said} > {kept}; echo $status > {status}")?;
            }
        }
    }
    Ok(script)
}

fn file(folder: &Path, number: usize, kind: &str) -> PathBuf {
    folder.join(format!("{number}.{kind}"))
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

impl Step<'_> {
    fn text(&self) -> &str {
        match self.action {
            Action::Write { text, .. } => text,
            Action::Run { commands } => commands,
            Action::Show { command, .. } => command,
        }
    }

    fn judge(&self, number: usize, folder: &Path) -> Result<()> {
        let said = |kind| fs::read_to_string(file(folder, number, kind)).unwrap_or_default();
        let Ok(status) = fs::read_to_string(file(folder, number, "status")) else {
            bail!("failed, took too long, or had no turn:\n{}\n--- it said ---\n{}", self.text(), said("said"));
        };
        let Action::Show { command, output } = self.action else { return Ok(()) };
        let real = said("kept");
        ensure!(same_output(output, &real), "{command}\n--- the page shows ---\n{output}\n--- it says ---\n{real}");
        // A failure that shows is what the page is about.
        ensure!(status.trim() == "0" || !output.is_empty(), "{command}\nfailed without a word ({})", status.trim());
        Ok(())
    }
}
