//! `sluicegate key`: which keys in the store belong to a subject.

use std::{
    io::{self, Read as _, Write as _},
    path::PathBuf,
};

use clap::Args;
use sluicegate_wire::{Name, Subject};

use super::{Failure, environment};
use crate::config::Config;

/// What to print the keys of.
#[derive(Debug, Args)]
pub(super) struct KeyArgs {
    /// The policy.
    policy: Name,
    /// The subject: a text, or with --json a key as in /v1/check; - reads it from standard input.
    subject: String,
    /// The subject is JSON, such as '[{"secret": "abc"}, "tenant"]'.
    #[arg(long)]
    json: bool,
    /// The configuration file: its prefix, pepper and policies.
    #[arg(long, short, value_name = "FILE", default_value = "./sluicegate.yaml")]
    config: PathBuf,
}

/// Prints the key of each limit, then that of the ban and of the override where the policy has them.
pub(super) fn print_keys(args: &KeyArgs) -> Result<(), Failure> {
    let config = Config::load(&args.config, &environment)?;
    let policy = config.policies.get(args.policy.as_str());
    let policy = policy.ok_or_else(|| Failure::Input(format!("POLICY: there is no policy {}", args.policy)))?;
    let subject = subject(args)?.encode(config.key_pepper.as_ref());
    let keys = config.store.prefix.keys(policy.name(), &subject);
    let mut lines: Vec<String> = policy.limits().iter().map(|limit| keys.limit(&limit.name)).collect();
    lines.extend(policy.ban().map(|_| keys.ban()));
    lines.extend(policy.overrides().then(|| keys.overrides()));
    writeln!(io::stdout(), "{}", lines.join("\n"))
        .map_err(|error| Failure::Io { doing: "writing to standard output", error })
}

fn subject(args: &KeyArgs) -> Result<Subject, Failure> {
    let mut text = args.subject.clone();
    if text == "-" {
        text.clear();
        let read = io::stdin().read_to_string(&mut text);
        read.map_err(|error| Failure::Io { doing: "reading standard input", error })?;
        text.truncate(text.trim_end_matches('\n').len());
    }
    if args.json {
        serde_json::from_str(&text).map_err(|error| Failure::Input(format!("SUBJECT: {error}")))
    } else {
        Ok(Subject::text(text))
    }
}
