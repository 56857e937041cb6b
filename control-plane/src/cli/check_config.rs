//! `sluicegate check-config`: what is wrong with the configuration of the service and of the filter.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
    path::PathBuf,
};

use clap::Args;
use serde_json::json;

use super::{Failure, environment};
use crate::{
    config::{Config, ConfigError, ConfigErrors},
    plugin::{self, Report},
};

/// What to check.
#[derive(Debug, Args)]
pub(super) struct CheckConfigArgs {
    /// The service's configuration file.
    file: PathBuf,
    /// A file with the filter's configuration, to be checked as well and against the service's: the configuration alone
    /// as JSON or YAML, or Envoy's or Istio's YAML with it inside. May be given several times.
    #[arg(long = "filter", value_name = "PLUGIN")]
    filters: Vec<PathBuf>,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
}

/// What was found, with all files together.
#[derive(Default)]
struct Findings {
    /// What was good, one line a file.
    good: String,
    errors: Vec<ConfigError>,
    warnings: Vec<ConfigError>,
}

/// Prints a summary of each good file to standard output, and each fault or warning to standard error; with `--json` all
/// of it to standard output.
pub(super) fn check_config(args: &CheckConfigArgs) -> Result<(), Failure> {
    let mut findings = Findings::default();
    let service = match Config::load(&args.file, &environment) {
        Ok(config) => {
            findings.good(&args.file, &summary(&config));
            Some(config)
        }
        Err(errors) => {
            findings.errors.extend(faults(errors));
            None
        }
    };
    for file in &args.filters {
        match plugin::check(file, service.as_ref()) {
            Ok(report) => findings.add(file, report),
            Err(errors) => findings.errors.extend(faults(errors)),
        }
    }
    if args.json { findings.print_json(service.as_ref()) } else { findings.print() }
}

fn summary(config: &Config) -> String {
    let limits: usize = config.policies.iter().map(|policy| policy.limits().len()).sum();
    format!("policies: {}, limits: {limits}, version: {}", config.policies.len(), config.policies.version())
}

/// A file that can't be read is a fault of its first line.
fn faults(errors: ConfigErrors) -> Vec<ConfigError> {
    match errors {
        ConfigErrors::Faults(faults) => faults,
        ConfigErrors::Unreadable { file, error } => {
            vec![ConfigError { file, line: 1, column: 1, reason: format!("can't be read: {error}") }]
        }
    }
}

impl Findings {
    fn good(&mut self, file: &std::path::Path, summary: &str) {
        // A string takes all that is written to it.
        let _ = writeln!(self.good, "{}: good ({summary})", file.display());
    }

    fn add(&mut self, file: &std::path::Path, report: Report) {
        let Report { errors, warnings, plugins, rules, limits } = report;
        if errors.is_empty() {
            let several = if plugins == 1 { String::new() } else { format!("configurations: {plugins}, ") };
            self.good(file, &format!("{several}rules: {rules}, limits: {limits}"));
        }
        self.errors.extend(errors);
        self.warnings.extend(warnings);
    }

    fn print(self) -> Result<(), Failure> {
        print(&self.good)?;
        for warning in self.warnings {
            let ConfigError { file, line, column, reason } = warning;
            // Nothing is left to tell the user with when standard error is closed.
            let _ = writeln!(io::stderr(), "{file}:{line}:{column}: warning: {reason}");
        }
        if self.errors.is_empty() { Ok(()) } else { Err(ConfigErrors::Faults(self.errors).into()) }
    }

    fn print_json(self, service: Option<&Config>) -> Result<(), Failure> {
        let finding = |severity: &str, ConfigError { file, line, column, reason }: &ConfigError| json!({ "severity": severity, "file": file, "line": line, "column": column, "message": reason });
        let errors = self.errors.iter().map(|error| finding("error", error));
        let warnings = self.warnings.iter().map(|warning| finding("warning", warning));
        let result = json!({
            "good": self.errors.is_empty(),
            "policies_version": service.map(|config| config.policies.version().to_string()),
            "findings": errors.chain(warnings).collect::<Vec<_>>(),
        });
        print(&format!("{result}\n"))?;
        if self.errors.is_empty() { Ok(()) } else { Err(Failure::Told) }
    }
}

fn print(text: &str) -> Result<(), Failure> {
    let written = io::stdout().write_all(text.as_bytes());
    written.map_err(|error| Failure::Io { doing: "writing to standard output", error })
}
