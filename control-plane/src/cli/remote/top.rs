//! `sluicegate top`: who comes most often.

use axum::http::Method;
use clap::{Args, ValueEnum};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::args::AdminArgs;
use crate::{
    api::TopAnswer,
    cli::{
        Failure,
        table::{Table, duration},
    },
};

pub(super) const EXAMPLES: &str = "\
Examples:
  sluicegate top
  sluicegate top login --by denials -n 20
  sluicegate top api --json | jq -r '.policies[].subjects[].subject'

Counts are of one replica and of the last 5 to 10 minutes. A subject came at most COUNT times, and at least COUNT less
ERROR. Secrets are shown as digests, which peek and the others take with --encoded.";

#[derive(Debug, Args)]
pub(in crate::cli) struct TopArgs {
    /// The policy; without, each of them.
    policy: Option<String>,
    /// By what to rank.
    #[arg(long, value_enum, default_value_t = By::Takes)]
    by: By,
    /// How many subjects of each policy, 1 to 100.
    #[arg(short, default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    n: u8,
    #[command(flatten)]
    service: AdminArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Checks that took tokens.
    Takes,
    /// Checks that were denied.
    Denials,
}

impl TopArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let by = match self.by {
            By::Takes => "takes",
            By::Denials => "denials",
        };
        let policy = self
            .policy
            .as_ref()
            .map_or_else(String::new, |policy| format!("&policy={}", utf8_percent_encode(policy, NON_ALPHANUMERIC)));
        let path = format!("/v1/top?by={by}&n={}{policy}", self.n);
        let answer = self.service.client()?.ask(Method::GET, &path, &())?;
        self.service.print(&answer, |answer| Ok(text(&answer.read()?)))
    }
}

fn text(answer: &TopAnswer) -> String {
    let mut text = String::new();
    for policy in &answer.policies {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}: {} in the last {}\n", policy.policy, policy.total, duration(policy.window_ms)));
        if policy.subjects.is_empty() {
            continue;
        }
        let mut table = Table::new(["SUBJECT", "COUNT", "ERROR"]);
        for subject in &policy.subjects {
            let error = if subject.error == 0 { String::new() } else { subject.error.to_string() };
            table.row([subject.subject.clone(), subject.count.to_string(), error]);
        }
        text.push_str(&table.text());
    }
    text
}
