//! `sluicegate reset`, `grant`, `ban` and `unban`.

use axum::http::Method;
use clap::Args;
use sluicegate_wire::Cost;

use super::args::{AdminArgs, SubjectArgs};
use crate::{
    api::{BanAnswer, BanRequest, GrantAnswer, GrantRequest, ResetAnswer, ResetRequest, UnbanAnswer, UnbanRequest},
    cli::{Failure, table::duration},
    config::parse_duration,
};

pub(super) const RESET_EXAMPLES: &str = "\
Examples:
  sluicegate reset login 203.0.113.7
  sluicegate reset api carol --override              # its own numbers, too";
pub(super) const GRANT_EXAMPLES: &str = "\
Examples:
  sluicegate grant api carol 100";
pub(super) const BAN_EXAMPLES: &str = "\
Examples:
  sluicegate ban login 203.0.113.7                   # for as long as the policy bans
  sluicegate ban login 203.0.113.7 --for 7d";
pub(super) const UNBAN_EXAMPLES: &str = "\
Examples:
  sluicegate unban login 203.0.113.7";

#[derive(Debug, Args)]
pub(in crate::cli) struct ResetArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Take the subject's own numbers away as well.
    #[arg(long = "override")]
    own: bool,
    #[command(flatten)]
    service: AdminArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct GrantArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Tokens for each limit of the policy.
    tokens: u64,
    #[command(flatten)]
    service: AdminArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct BanArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// How long, such as 90s, 12h or 7d, at most 366d; without, as long as the policy bans.
    #[arg(long = "for", value_name = "DURATION")]
    lasts: Option<String>,
    #[command(flatten)]
    service: AdminArgs,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct UnbanArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    service: AdminArgs,
}

impl ResetArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let (policy, key) = (self.subject.policy.clone(), self.subject.key()?);
        let question = ResetRequest { policy, key, own: self.own };
        let answer = self.service.client()?.ask(Method::POST, "/v1/reset", &question)?;
        self.service.print(&answer, |answer| {
            let ResetAnswer { policy, subject, removed } = answer.read()?;
            Ok(match removed {
                0 => format!("{subject} of policy {policy} had nothing to reset"),
                _ => format!("{subject} of policy {policy} is reset"),
            })
        })
    }
}

impl GrantArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let (policy, key) = (self.subject.policy.clone(), self.subject.key()?);
        let tokens = Cost::new(self.tokens).map_err(|error| Failure::Input(format!("TOKENS: {error}")))?;
        let answer = self.service.client()?.ask(Method::POST, "/v1/grant", &GrantRequest { policy, key, tokens })?;
        self.service.print(&answer, |answer| {
            let answer: GrantAnswer = answer.read()?;
            let each = answer.limits.iter().map(|limit| format!("{} got {}", limit.limit, limit.granted));
            Ok(format!("{} of policy {}: {}", answer.subject, answer.policy, each.collect::<Vec<_>>().join(", ")))
        })
    }
}

impl BanArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let (policy, key) = (self.subject.policy.clone(), self.subject.key()?);
        let for_ms = self.lasts.as_deref().map(|lasts| millis("--for", lasts)).transpose()?;
        let answer = self.service.client()?.ask(Method::POST, "/v1/ban", &BanRequest { policy, key, for_ms })?;
        self.service.print(&answer, |answer| {
            let BanAnswer { policy, subject, for_ms } = answer.read()?;
            Ok(format!("{subject} is banned from policy {policy} for {}", duration(for_ms)))
        })
    }
}

impl UnbanArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let question = UnbanRequest { policy: self.subject.policy.clone(), key: self.subject.key()? };
        let answer = self.service.client()?.ask(Method::POST, "/v1/unban", &question)?;
        self.service.print(&answer, |answer| {
            let UnbanAnswer { policy, subject, lifted } = answer.read()?;
            let was = if lifted { "is no longer banned" } else { "was not banned" };
            Ok(format!("{subject} {was} from policy {policy}"))
        })
    }
}

/// A duration of the command line in ms.
pub(super) fn millis(argument: &str, text: &str) -> Result<u64, Failure> {
    let duration = parse_duration(text).map_err(|error| Failure::Input(format!("{argument}: {error}")))?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
