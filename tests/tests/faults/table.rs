//! The table of all rows that held: printed, and kept where `SLUICEGATE_FAULT_RESULTS` says.

use std::{
    env, fmt, fs,
    io::{self, Write as _},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crate::row::Outcome;

/// The file that the table is written to besides.
const RESULTS: &str = "SLUICEGATE_FAULT_RESULTS";

/// The rows that held so far.
#[derive(Clone, Default)]
pub(crate) struct Table(Arc<Mutex<Vec<(&'static str, Outcome)>>>);

impl Table {
    pub(crate) fn add(&self, fault: &'static str, outcome: Outcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((fault, outcome));
    }

    /// Prints the rows; with nothing to print, nothing.
    pub(crate) fn print(&self) {
        if self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            return;
        }
        // To standard output, as the built-in runner prints its own.
        let _ = writeln!(io::stdout(), "\n{self}");
        if let Some(file) = env::var_os(RESULTS) {
            fs::write(&file, format!("{HEAD}{self}"))
                .unwrap_or_else(|error| panic!("can't write {}: {error}", file.display()));
        }
    }
}

const HEAD: &str = "\
# The store at fault

The last run of `cargo xtask test --faults`, which writes this file: real servers on one machine, a debug build of the
service, and load, service and servers on the same cores. What each row asserts is in `tests/tests/faults/`.

";

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "| fault | asked | allowed | denied | failed | median | worst | first decision after the fault | seen |"
        )?;
        writeln!(formatter, "|---|---|---|---|---|---|---|---|---|")?;
        for (fault, outcome) in self.0.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let Outcome { asked, allowed, denied, failed, median, worst, back_after, seen } = outcome;
            let (median, worst) = (ms(*median), ms(*worst));
            let back_after = back_after.map_or_else(|| "–".to_owned(), ms);
            writeln!(
                formatter,
                "| {fault} | {asked} | {allowed} | {denied} | {failed} | {median} | {worst} | {back_after} | {seen} |"
            )?;
        }
        Ok(())
    }
}

fn ms(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
