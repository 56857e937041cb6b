//! `sluicegate override`: numbers of a subject's own.

use std::collections::BTreeMap;

use axum::http::Method;
use clap::{Args, Subcommand};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{
    args::{AdminArgs, SubjectArgs},
    peek::override_text,
    subjects::millis,
};
use crate::{
    api::{End, Numbers, OverrideAnswer, OverrideRequest, PeekAnswer, PeekRequest, RemoveAnswer},
    cli::Failure,
};

const SET_EXAMPLES: &str = "\
Examples:
  sluicegate override set api carol --limit burst:capacity=100,refill=50,per=1s --for 30d
  sluicegate override set api carol --limit month:quota=5000000 --until 2027-06-30T23:59:59Z
  sluicegate override set api carol --limit burst:capacity=100 --keep";

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum OverrideCommand {
    /// Give a subject numbers of its own, in place of those it had.
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// Show a subject's own numbers.
    Show(WhoseArgs),
    /// Take a subject's own numbers away.
    Remove(WhoseArgs),
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SetArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    /// Numbers of a limit: NAME: and capacity=, refill= and per= of a bucket, or quota=; what is left out stays. Repeat
    /// it for several limits.
    #[arg(long = "limit", value_name = "NAME:NUMBERS", required = true)]
    limits: Vec<String>,
    #[command(flatten)]
    end: EndArgs,
    #[command(flatten)]
    service: AdminArgs,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct EndArgs {
    /// They end after this time, such as 12h or 30d, at most 366d.
    #[arg(long = "for", value_name = "DURATION")]
    lasts: Option<String>,
    /// They end at this time, in RFC 3339.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// They end 366 days after the last check.
    #[arg(long)]
    keep: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct WhoseArgs {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(flatten)]
    service: AdminArgs,
}

impl OverrideCommand {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Set(args) => args.run(),
            Self::Show(args) => args.show(),
            Self::Remove(args) => args.remove(),
        }
    }
}

impl SetArgs {
    fn run(&self) -> Result<(), Failure> {
        let mut limits = BTreeMap::new();
        for limit in &self.limits {
            let (name, numbers) = numbers(limit)?;
            if limits.insert(name.clone(), numbers).is_some() {
                return Err(Failure::Input(format!("--limit: {name} is there twice; give it once, with all numbers")));
            }
        }
        let (policy, key) = (self.subject.policy.clone(), self.subject.key()?);
        let question = OverrideRequest { policy, key, limits, end: self.end.end()? };
        let answer = self.service.client()?.ask(Method::PUT, "/v1/override", &question)?;
        self.service.print(&answer, |answer| Ok(shown(&answer.read()?)))
    }
}

impl EndArgs {
    fn end(&self) -> Result<End, Failure> {
        Ok(match (&self.lasts, &self.until) {
            (Some(lasts), _) => End::ForMs(millis("--for", lasts)?),
            (None, Some(time)) => End::Until(time.clone()),
            (None, None) => End::Keep,
        })
    }
}

impl WhoseArgs {
    fn show(&self) -> Result<(), Failure> {
        let path = self.path()?;
        let answer = self.service.client()?.ask(Method::GET, &path, &())?;
        self.service.print(&answer, |answer| Ok(shown(&answer.read()?)))
    }

    fn remove(&self) -> Result<(), Failure> {
        let path = self.path()?;
        let answer = self.service.client()?.ask(Method::DELETE, &path, &())?;
        self.service.print(&answer, |answer| {
            let RemoveAnswer { policy, subject, removed } = answer.read()?;
            let has = if removed { "has no longer" } else { "had no" };
            Ok(format!("{subject} of policy {policy} {has} numbers of its own"))
        })
    }

    /// The path of the override. Only the service knows how the subject is encoded: there may be a pepper.
    fn path(&self) -> Result<String, Failure> {
        let question = PeekRequest { policy: self.subject.policy.clone(), key: self.subject.key()? };
        let peek: PeekAnswer = self.service.client()?.ask(Method::POST, "/v1/peek", &question)?.read()?;
        let encode = |text| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        Ok(format!("/v1/override?policy={}&subject={}", encode(&peek.policy), encode(&peek.subject)))
    }
}

fn shown(answer: &OverrideAnswer) -> String {
    format!("{} of policy {}\n{}", answer.subject, answer.policy, override_text(&answer.own))
}

/// Reads `burst:capacity=100,refill=50,per=1s`.
fn numbers(text: &str) -> Result<(String, Numbers), Failure> {
    let wrong = |reason: &str| Failure::Input(format!("--limit: {text}: {reason}"));
    let (name, pairs) = text.split_once(':').ok_or_else(|| wrong("use NAME:capacity=100 or NAME:quota=500"))?;
    let mut numbers = Numbers::default();
    for pair in pairs.split(',') {
        let (field, value) = pair.split_once('=').ok_or_else(|| wrong("use pairs such as capacity=100"))?;
        let whole = || value.parse().map_err(|_| wrong("use whole numbers"));
        let field = match field {
            "capacity" => numbers.capacity.replace(whole()?),
            "refill" => numbers.refill.replace(whole()?),
            "per" => numbers.per_ms.replace(millis("--limit: per", value)?),
            "quota" => numbers.quota.replace(whole()?),
            _ => return Err(wrong("there are capacity, refill, per and quota")),
        };
        if field.is_some() {
            return Err(wrong("a number is there twice"));
        }
    }
    Ok((name.to_owned(), numbers))
}
