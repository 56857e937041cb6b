//! `sluicegate check`: one check.

use axum::http::Method;
use clap::Args;
use sluicegate_wire::{Check, CheckAnswer, CheckRequest, Cost};

use super::args::{DataArgs, SubjectArgs};
use crate::cli::{
    Failure,
    table::{Table, duration},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  sluicegate check login 203.0.113.7
  sluicegate check api - --secret --cost 5 < key.txt
  sluicegate check login 203.0.113.7 --cost 0      # looks without taking

Exit codes: 0 allowed, 4 denied, 1 no decision, 2 the question is wrong";

#[derive(Debug, Args)]
pub(in crate::cli) struct CheckArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Tokens to take.
    #[arg(long, default_value_t = 1)]
    cost: u64,
    #[command(flatten)]
    service: DataArgs,
}

impl CheckArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let cost = Cost::new(self.cost).map_err(|error| Failure::Input(format!("--cost: {error}")))?;
        let check = Check { policy: self.subject.policy.clone(), key: self.subject.check_key()?, cost, shadow: false };
        let question = CheckRequest { checks: vec![check] };
        let answer = self.service.client()?.send(Method::POST, "/v1/check", &question)?;
        let decision: CheckAnswer = match answer.status {
            // Without its body a 429 would be somebody else's.
            200 | 429 => answer.read()?,
            _ => return Err(answer.refusal().into()),
        };
        self.service.print(&answer, |_| Ok(text(&decision)))?;
        if decision.allowed { Ok(()) } else { Err(Failure::Denied) }
    }
}

fn text(answer: &CheckAnswer) -> String {
    let mut table = Table::new(["LIMIT", "VERDICT", "LEFT", "OF", "RETRY IN", "FULL IN"]);
    for result in &answer.results {
        let retry = match result.retry_after_ms {
            _ if result.allowed => String::new(),
            Some(ms) => duration(ms),
            None => "never".to_owned(),
        };
        table.row([
            result.limit.clone(),
            result.reason.as_str().to_owned(),
            result.remaining.to_string(),
            result.capacity.to_string(),
            retry,
            duration(result.full_ms),
        ]);
    }
    format!("{}\n{}", if answer.allowed { "allowed" } else { "denied" }, table.text())
}
