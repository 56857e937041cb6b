//! The command line.

mod check_config;
mod client;
mod key;
mod remote;
mod table;

use std::{
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::{
    config::{Config, ConfigErrors},
    log,
    policies::Follower,
    serve::{Inherited, InheritedError, Server, Signals},
    trace::{TraceError, Traces},
};

use remote::Remote;

const EXIT_CODES: &str = "\
Exit codes:
  0    done: drained after SIGTERM or SIGINT, the file is good, or what was asked for is printed; a check: allowed
  1    the service couldn't start, for example because an address is in use; or a running one can't be reached or gave no
       answer
  2    the command line is wrong, or names what is not there
  3    the configuration is wrong: each fault is printed as file:line:column
  4    the check was denied
  130  ended at once by SIGINT while draining (143 by SIGTERM)";

const ENVIRONMENT: &str = "\
Environment:
  SLUICEGATE_LOG         what to log: error, warn, info (default), debug, trace, or directives such as
                         sluicegate_control_plane=debug
  SLUICEGATE_LOG_FORMAT  text (default) or json
  OTEL_EXPORTER_OTLP_ENDPOINT
                         where to send traces over OTLP/HTTP, such as http://127.0.0.1:4318; off without. Further
                         OTEL_* variables as OpenTelemetry has them, such as OTEL_TRACES_SAMPLER";

/// Distributed rate limits for services behind Envoy.
#[derive(Debug, Parser)]
#[command(name = "sluicegate", version, after_help = EXIT_CODES, after_long_help = format!("{EXIT_CODES}\n\n{ENVIRONMENT}"))]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Answer checks until SIGTERM or SIGINT.
    #[command(after_help = format!("{EXIT_CODES}\n\n{ENVIRONMENT}"))]
    Serve {
        /// The configuration file.
        #[arg(long, short, value_name = "FILE", default_value = "./sluicegate.yaml")]
        config: PathBuf,
    },
    /// Say what is wrong with a configuration file, and with the filter's.
    #[command(after_help = EXIT_CODES)]
    CheckConfig(check_config::CheckConfigArgs),
    /// Print the keys that a subject has in the store.
    #[command(after_help = EXIT_CODES)]
    Key(key::KeyArgs),
    #[command(flatten)]
    Remote(Remote),
    /// Print what a shell needs to complete this command line.
    #[command(after_help = "Example:\n  sluicegate completions bash > /etc/bash_completion.d/sluicegate")]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Why a command ended without doing its work.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Config(#[from] ConfigErrors),
    /// The user knows already.
    #[error("the configuration is wrong")]
    Told,
    #[error("sluicegate: {0}")]
    Log(#[from] log::LogError),
    #[error("sluicegate: {0}")]
    Bind(#[from] Box<crate::serve::BindError>),
    #[error("sluicegate: {0}")]
    Inherited(#[from] InheritedError),
    #[error("sluicegate: {0}")]
    Trace(#[from] TraceError),
    #[error("sluicegate: {0}")]
    Input(String),
    /// A running service gave no answer.
    #[error("sluicegate: {0}")]
    Service(String),
    /// The answer says it all.
    #[error("sluicegate: denied")]
    Denied,
    #[error("sluicegate: {doing}: {error}")]
    Io { doing: &'static str, error: io::Error },
}

impl Failure {
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Config(_) | Self::Told => ExitCode::from(3),
            Self::Input(_) => ExitCode::from(2),
            Self::Denied => ExitCode::from(4),
            Self::Log(_) | Self::Bind(_) | Self::Inherited(_) | Self::Trace(_) | Self::Service(_) | Self::Io { .. } => {
                ExitCode::FAILURE
            }
        }
    }
}

impl Cli {
    /// Does what the command line asks for; errors go to standard error.
    #[must_use]
    pub fn run(self) -> ExitCode {
        let done = match self.command {
            Command::Serve { config } => serve(&config),
            Command::CheckConfig(args) => check_config::check_config(&args),
            Command::Key(args) => key::print_keys(&args),
            Command::Remote(remote) => remote.run(),
            Command::Completions { shell } => {
                clap_complete::generate(shell, &mut Self::command(), "sluicegate", &mut io::stdout());
                Ok(())
            }
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure @ (Failure::Told | Failure::Denied)) => failure.exit_code(),
            Err(failure) => {
                // Nothing is left to tell the user with when standard error is closed.
                let _ = writeln!(io::stderr(), "{failure}");
                failure.exit_code()
            }
        }
    }
}

fn serve(path: &Path) -> Result<(), Failure> {
    let config = Config::load(path, &environment)?;
    log::init(&environment)?;
    // Before there are threads: it changes the environment.
    let inherited = Inherited::from_environment()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| Failure::Io { doing: "starting threads", error })?;
    let done = runtime.block_on(async {
        // Before the first log line: who reads that the service listens may stop it.
        let doing = "handling signals";
        let signals = Signals::install().map_err(|error| Failure::Io { doing, error })?;
        let hangups = Follower::hangups().map_err(|error| Failure::Io { doing, error })?;
        let written = config.written.clone();
        let traces = Traces::from_environment(&environment)?;
        let server = Server::bind(config, inherited, traces).await.map_err(Box::new)?;
        let follower = Follower::new(server.policies().clone(), path, environment, written);
        tokio::spawn(follower.follow(hangups));
        server.run(signals.stop()).await;
        Ok(())
    });
    // A file system that hangs under the configuration must not hold up the end.
    runtime.shutdown_background();
    done
}

/// An environment variable; one that is not Unicode counts as unset.
fn environment(variable: &str) -> Option<String> {
    std::env::var(variable).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn serve_reads_the_file_in_the_working_directory_by_default() {
        let Command::Serve { config } = Cli::try_parse_from(["sluicegate", "serve"]).unwrap().command else {
            panic!("not serve");
        };
        assert_eq!(config, Path::new("./sluicegate.yaml"));
    }
}
