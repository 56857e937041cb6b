//! The `sluicegate` command.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser as _;
use sluicegate_control_plane::cli::Cli;

fn main() -> ExitCode {
    Cli::parse().run()
}
