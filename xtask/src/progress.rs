//! What the commands tell while they work, on stderr.

use std::time::{Duration, Instant};

use anyhow::Result;

/// One step of the set-up that takes a while.
pub(crate) struct Step {
    name: String,
    start: Instant,
}

impl Step {
    /// Starts the clock and says so.
    pub(crate) fn begin(name: &str) -> Self {
        eprintln!("setup: {name} ...");
        Self { name: name.to_owned(), start: Instant::now() }
    }

    /// Says that the step is still running, and at what.
    pub(crate) fn heartbeat(&self, detail: &str) {
        eprintln!("setup: {}: {} so far: {detail}", self.name, seconds(self.start.elapsed()));
    }

    /// Says how long it took.
    pub(crate) fn end(self) {
        eprintln!("setup: {}: done in {}", self.name, seconds(self.start.elapsed()));
    }
}

/// The phases of a command; dropped, it prints how long each took, whether or not the command succeeded.
#[derive(Default)]
pub(crate) struct Phases {
    done: Vec<(&'static str, Duration, bool)>,
}

impl Phases {
    pub(crate) fn run<T>(&mut self, name: &'static str, phase: impl FnOnce() -> Result<T>) -> Result<T> {
        let start = Instant::now();
        let result = phase();
        self.done.push((name, start.elapsed(), result.is_ok()));
        result
    }
}

impl Drop for Phases {
    fn drop(&mut self) {
        // One phase has told already what it did.
        if self.done.len() < 2 {
            return;
        }
        eprintln!();
        for (name, elapsed, ok) in &self.done {
            eprintln!("{:>9}  {name}{}", seconds(*elapsed), if *ok { "" } else { ": FAILED" });
        }
        let total = self.done.iter().map(|(_, elapsed, _)| *elapsed).sum();
        eprintln!("{:>9}  in all", seconds(total));
    }
}

fn seconds(elapsed: Duration) -> String {
    format!("{:.1} s", elapsed.as_secs_f64())
}
