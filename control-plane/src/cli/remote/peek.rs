//! `sluicegate peek`: what a subject has left.

use axum::http::Method;
use clap::Args;

use super::args::{AdminArgs, SubjectArgs};
use crate::{
    api::{BanState, NumbersView, OverrideView, PeekAnswer, PeekRequest},
    cli::{
        Failure,
        table::{Table, duration},
    },
};

pub(super) const EXAMPLES: &str = "\
Examples:
  sluicegate peek login 203.0.113.7
  sluicegate peek api - --secret < key.txt
  sluicegate peek api '#ba7816bf8f01cfea414140de5dae2223' --encoded     # as top shows it
  sluicegate peek api carol --json | jq .limits";

#[derive(Debug, Args)]
pub(in crate::cli) struct PeekArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    service: AdminArgs,
}

impl PeekArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let question = PeekRequest { policy: self.subject.policy.clone(), key: self.subject.key()? };
        let answer = self.service.client()?.ask(Method::POST, "/v1/peek", &question)?;
        self.service.print(&answer, |answer| Ok(text(&answer.read()?)))
    }
}

fn text(answer: &PeekAnswer) -> String {
    let mut table = Table::new(["LIMIT", "LEFT", "OF", "NEXT IN", "FULL IN"]);
    for level in &answer.limits {
        table.row([
            level.limit.clone(),
            level.remaining.to_string(),
            level.capacity.to_string(),
            duration(level.next_ms),
            duration(level.full_ms),
        ]);
    }
    let mut text = format!("{} of policy {}\n{}", answer.subject, answer.policy, table.text());
    if let Some(ban) = &answer.ban {
        text.push_str(&format!("ban: {}\n", ban_text(ban)));
    }
    if let Some(own) = &answer.own {
        text.push_str(&override_text(own));
    }
    text
}

fn ban_text(ban: &BanState) -> String {
    if ban.banned {
        format!("banned for {} more", duration(ban.left_ms))
    } else {
        format!("none; {} of {} denials counted", ban.denials, ban.after)
    }
}

/// An override in lines of its own.
pub(super) fn override_text(own: &OverrideView) -> String {
    let renewed = if own.keep { ", renewed by use" } else { "" };
    let mut text = format!("own numbers until {} (in {}{renewed}):\n", own.until, duration(own.left_ms));
    for (limit, numbers) in &own.limits {
        let numbers = match numbers {
            NumbersView::Bucket { capacity, refill, per_ms, .. } => {
                format!("capacity {capacity}, {refill} per {}", duration(*per_ms))
            }
            NumbersView::Quota { quota } => format!("quota {quota}"),
        };
        text.push_str(&format!("  {limit}: {numbers}\n"));
    }
    text
}
