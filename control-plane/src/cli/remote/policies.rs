//! `sluicegate policies`: what is limited.

use axum::http::Method;
use clap::Args;

use super::args::AdminArgs;
use crate::{
    api::{LimitView, PoliciesAnswer, PolicyView},
    cli::{
        Failure,
        table::{Table, duration},
    },
};

pub(super) const EXAMPLES: &str = "\
Examples:
  sluicegate policies
  sluicegate policies --json | jq -r .version        # the same on every replica that agrees";

#[derive(Debug, Args)]
pub(in crate::cli) struct PoliciesArgs {
    #[command(flatten)]
    service: AdminArgs,
}

impl PoliciesArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let answer = self.service.client()?.ask(Method::GET, "/v1/policies", &())?;
        self.service.print(&answer, |answer| Ok(text(&answer.read()?)))
    }
}

fn text(answer: &PoliciesAnswer) -> String {
    let mut table = Table::new(["POLICY", "LIMIT", "HOLDS", "REFILL", "BAN", "OVERRIDES"]);
    for policy in &answer.policies {
        for (index, limit) in policy.limits.iter().enumerate() {
            let first = index == 0;
            let only_first = |text: String| if first { text } else { String::new() };
            let (name, holds, refill) = columns(limit);
            table.row([
                only_first(policy.name.clone()),
                name,
                holds,
                refill,
                only_first(ban(policy)),
                only_first(if policy.overrides { "yes".to_owned() } else { String::new() }),
            ]);
        }
    }
    let mut text = format!("version {}\n{}", answer.version, table.text());
    if let Some(error) = &answer.reload.last_error {
        text.push_str(&format!("the file on disk is not in use, since it is wrong:\n{error}\n"));
    }
    if !answer.reload.needs_restart.is_empty() {
        text.push_str(&format!(
            "changed, but in use only after a restart: {}\n",
            answer.reload.needs_restart.join(", ")
        ));
    }
    text
}

fn columns(limit: &LimitView) -> (String, String, String) {
    match limit {
        LimitView::Bucket { name, capacity, refill, per_ms, interval } => {
            let steps = if *interval { ", at once" } else { "" };
            (name.clone(), capacity.to_string(), format!("{refill} per {}{steps}", duration(*per_ms)))
        }
        LimitView::Quota { name, quota, every, time_zone } => {
            (name.clone(), quota.to_string(), format!("each {every} ({time_zone})"))
        }
    }
}

fn ban(policy: &PolicyView) -> String {
    policy.ban.as_ref().map_or_else(String::new, |ban| {
        format!("{} within {}: {}", ban.after, duration(ban.within_ms), duration(ban.for_ms))
    })
}
