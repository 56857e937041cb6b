//! `sluicegate health`: what a container's health check runs, where there is no curl.

use axum::http::Method;
use clap::Args;

use super::args::DataArgs;
use crate::cli::Failure;

pub(super) const EXAMPLES: &str = "\
Examples:
  sluicegate health            # the process answers
  sluicegate health --ready    # and decides checks: its store is there, and it isn't stopping

Exit codes: 0 yes, 1 no, 2 the question is wrong";

#[derive(Debug, Args)]
pub(in crate::cli) struct HealthArgs {
    /// Ask whether checks are decided (/readyz) rather than whether the process answers (/healthz).
    #[arg(long)]
    ready: bool,
    #[command(flatten)]
    service: DataArgs,
}

impl HealthArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let path = if self.ready { "/readyz" } else { "/healthz" };
        let answer = self.service.client()?.ask(Method::GET, path, &())?;
        self.service.print(&answer, |answer| Ok(String::from_utf8_lossy(&answer.body).into_owned()))
    }
}
