//! The filter's configuration, checked before a proxy has it: by the filter's own parser, and against the service's
//! configuration.

mod find;
mod judge;
mod tree;

use std::path::Path;

use serde_saphyr::Location;

use crate::config::{Config, ConfigError, ConfigErrors};
use find::Plugin;
use judge::Judge;

/// What was found in a file with configurations of the filter.
#[derive(Debug, Default)]
pub struct Report {
    /// What makes a proxy refuse it, or the service refuse the filter's questions.
    pub errors: Vec<ConfigError>,
    /// What works, but not as its author would expect.
    pub warnings: Vec<ConfigError>,
    /// The configurations in the file.
    pub plugins: usize,
    /// The rules in them.
    pub rules: usize,
    /// The limits in these.
    pub limits: usize,
}

/// Checks a file: a plugin configuration as JSON or YAML, or a file of Envoy or Istio with such in it. Without `service`,
/// whose file may be faulty itself, by itself alone.
///
/// # Errors
/// When the file can't be read.
pub fn check(path: &Path, service: Option<&Config>) -> Result<Report, ConfigErrors> {
    Ok(check_text(&path.display().to_string(), &Config::read(path)?, service))
}

fn check_text(file: &str, text: &str, service: Option<&Config>) -> Report {
    let mut report = Report::default();
    let documents = tree::parse(text);
    match documents.as_ref().map_err(Clone::clone).and_then(|documents| find::plugins(documents)) {
        Ok(plugins) if plugins.is_empty() => {
            let reason = "there is no configuration of the filter in it: neither pluginConfig nor configuration";
            report.errors.push(fault(file, Location::UNKNOWN, reason.to_owned()));
        }
        Ok(plugins) => plugins.iter().for_each(|plugin| Judge { file, plugin, service }.judge(&mut report)),
        Err((place, reason)) => report.errors.push(fault(file, place, reason)),
    }
    report
}

fn fault(file: &str, place: Location, reason: String) -> ConfigError {
    ConfigError { file: file.to_owned(), line: place.line().max(1), column: place.column().max(1), reason }
}

#[cfg(test)]
mod tests;
