//! What the commands for a running service have in common: where it is, whom they mean, and how to print.

use std::{
    fmt::Display,
    io::{self, Read as _, Write as _},
    path::PathBuf,
};

use clap::Args;
use sluicegate_wire::{Part, Subject};

use crate::{
    api::Key,
    cli::{
        Failure,
        client::{Answer, Client},
        environment,
    },
    config::Secret,
};

/// How to reach the admin listener.
#[derive(Debug, Args)]
pub(super) struct AdminArgs {
    /// The service's admin listener: http://HOST:PORT, https://HOST:PORT or unix:/path.
    #[arg(long, env = "SLUICEGATE_ADMIN_URL", default_value = "http://127.0.0.1:8081")]
    url: String,
    /// A file whose first line is the token; without, it is the environment's SLUICEGATE_ADMIN_TOKEN.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

/// How to reach the listener that answers checks.
#[derive(Debug, Args)]
pub(super) struct DataArgs {
    /// Where the service answers checks: http://HOST:PORT, https://HOST:PORT or unix:/path.
    #[arg(long, env = "SLUICEGATE_URL", default_value = "http://127.0.0.1:8080")]
    url: String,
    /// A file whose first line is the token; without, it is the environment's SLUICEGATE_TOKEN.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// Whom to trust with https, in PEM; without, whom the system trusts.
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Print the service's answer as it is, for scripts.
    #[arg(long)]
    json: bool,
}

/// Who is meant.
#[derive(Debug, Args)]
pub(super) struct SubjectArgs {
    /// The policy.
    pub(super) policy: String,
    /// The subject, a text; - reads it from standard input.
    #[arg(allow_hyphen_values = true)]
    subject: String,
    /// The subject is a secret, to be digested; with - it is in no process list.
    #[arg(long, group = "form")]
    secret: bool,
    /// The subject is JSON, as the key of a check, such as '[{"secret": "abc"}, "tenant"]'.
    #[arg(long, group = "form")]
    parts: bool,
    /// The subject is as peek and top show it.
    #[arg(long, group = "form")]
    encoded: bool,
}

impl AdminArgs {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        self.common.client(&self.url, self.token_file.as_ref(), "SLUICEGATE_ADMIN_TOKEN")
    }

    /// Prints the answer, or what `human` makes of it.
    pub(super) fn print(
        &self,
        answer: &Answer,
        human: impl FnOnce(&Answer) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        self.common.print(answer, human)
    }
}

impl DataArgs {
    pub(super) fn client(&self) -> Result<Client, Failure> {
        self.common.client(&self.url, self.token_file.as_ref(), "SLUICEGATE_TOKEN")
    }

    pub(super) fn print(
        &self,
        answer: &Answer,
        human: impl FnOnce(&Answer) -> Result<String, Failure>,
    ) -> Result<(), Failure> {
        self.common.print(answer, human)
    }
}

impl CommonArgs {
    fn client(&self, url: &str, token_file: Option<&PathBuf>, variable: &str) -> Result<Client, Failure> {
        let token = match token_file {
            Some(file) => {
                let wrong =
                    |reason: &dyn Display| Failure::Input(format!("--token-file: {}: {reason}", file.display()));
                let text = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
                let token = text.lines().next().map(str::trim).filter(|token| !token.is_empty());
                Some(token.ok_or_else(|| wrong(&"its first line, which is the token, is empty"))?.to_owned())
            }
            None => environment(variable),
        };
        let token = token.filter(|token| !token.is_empty()).map(Secret::new);
        Ok(Client::new(url, token, self.ca_file.clone())?)
    }

    fn print(&self, answer: &Answer, human: impl FnOnce(&Answer) -> Result<String, Failure>) -> Result<(), Failure> {
        let mut text = if self.json { String::from_utf8_lossy(&answer.body).into_owned() } else { human(answer)? };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::Io { doing: "writing to standard output", error })
    }
}

impl SubjectArgs {
    /// The subject as a key of the admin API.
    pub(super) fn key(&self) -> Result<Key, Failure> {
        let mut text = self.subject.clone();
        if text == "-" {
            text.clear();
            let read = io::stdin().read_to_string(&mut text);
            read.map_err(|error| Failure::Io { doing: "reading standard input", error })?;
            text.truncate(text.trim_end_matches(['\n', '\r']).len());
        }
        let wrong = |error: String| Failure::Input(format!("SUBJECT: {error}"));
        if self.encoded {
            text.parse()
                .map(Key::Encoded)
                .map_err(|error: sluicegate_wire::EncodedSubjectError| wrong(error.to_string()))
        } else if self.parts {
            serde_json::from_str(&text).map(Key::Raw).map_err(|error| wrong(error.to_string()))
        } else if self.secret {
            let secret = Subject::new(vec![Part::Secret(text.into_bytes())]);
            secret.map(Key::Raw).map_err(|error| wrong(error.to_string()))
        } else {
            Ok(Key::Raw(Subject::text(text)))
        }
    }

    /// The subject as the key of a check.
    pub(super) fn check_key(&self) -> Result<Subject, Failure> {
        match self.key()? {
            Key::Raw(subject) => Ok(subject),
            Key::Encoded(_) => Err(Failure::Input(
                "--encoded: a check needs the subject itself; peek takes it as it is shown".to_owned(),
            )),
        }
    }
}
