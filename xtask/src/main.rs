//! The developer's commands: `cargo xtask setup | demo | test | bench | build-filter | lint | ci`.
//!
//! Each command sets up what it needs first; what is installed goes into `.tools/` and is kept. The crate stays light,
//! since everyone who types `cargo xtask` waits for it to compile.
#![forbid(unsafe_code)]

mod build;
mod commands;
mod lint;
mod lock_file;
mod process;
mod progress;
mod setup;
mod tidy;
mod tools_dir;
mod workspace;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
