//! Sluicegate measured beside what else there is: `cargo xtask bench`.
//!
//! Every figure is a ratio of two things measured by turns in one run, since absolute numbers move with the machine.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "the terminal is what this is for")]

mod captured;
mod figure;
mod load;
mod machine;
mod peer;
mod prometheus;
mod results;
mod rounds;
mod rows;
mod setting;
mod side;
mod store;
mod tally;
mod usage;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser as _;
use sluicegate_tests::interrupt;
use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

use setting::{Arguments, Setting};

#[tokio::main]
async fn main() -> ExitCode {
    // What was started ends with the future that holds it, also when that is dropped half way.
    let done = tokio::select! {
        done = run() => done,
        () = interrupted() => return ExitCode::FAILURE,
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every row could be measured. A figure that misses its goal is a result, not a failure.
async fn run() -> Result<bool> {
    let arguments = Arguments::parse();
    let setting = Setting::new(&arguments)?;
    let machine = machine::describe(&setting)?;
    let lines = rows::measure(&setting).await;
    let report = results::render(&setting, &machine, &lines);
    println!("\n{report}");
    if arguments.writes() {
        results::write(&report)?;
    }
    Ok(lines.iter().all(|line| !line.is_failure()))
}

/// Returns on Ctrl-C and on SIGTERM.
async fn interrupted() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    interrupt();
}
