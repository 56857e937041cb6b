//! Commands that ask a running service, or tell it to do something.

mod args;
mod check;
mod health;
mod overrides;
mod peek;
mod policies;
mod subjects;
mod top;

use clap::Subcommand;

use super::{Failure, client::ClientError};

/// A command for a running service.
#[derive(Debug, Subcommand)]
pub(super) enum Remote {
    /// Ask a check once, as a proxy would: it takes, and exits with 4 when denied.
    #[command(after_help = check::EXAMPLES)]
    Check(check::CheckArgs),
    /// Say whether the service is up, or whether it decides checks.
    #[command(after_help = health::EXAMPLES)]
    Health(health::HealthArgs),
    /// Show what a subject has left, its ban and its own numbers, without taking.
    #[command(after_help = peek::EXAMPLES)]
    Peek(peek::PeekArgs),
    /// Make a subject's limits full and lift its ban.
    #[command(after_help = subjects::RESET_EXAMPLES)]
    Reset(subjects::ResetArgs),
    /// Give a subject tokens, up to the capacity of each limit.
    #[command(after_help = subjects::GRANT_EXAMPLES)]
    Grant(subjects::GrantArgs),
    /// Ban a subject from now on; its policy must have a ban.
    #[command(after_help = subjects::BAN_EXAMPLES)]
    Ban(subjects::BanArgs),
    /// Lift a subject's ban, and forget the denials counted towards one.
    #[command(after_help = subjects::UNBAN_EXAMPLES)]
    Unban(subjects::UnbanArgs),
    /// Numbers of a subject's own, in place of its policy's.
    #[command(subcommand)]
    Override(overrides::OverrideCommand),
    /// Show the policies in use, their version, and what became of the last reload.
    #[command(after_help = policies::EXAMPLES)]
    Policies(policies::PoliciesArgs),
    /// Show who takes most, or is denied most, of the last minutes at this replica.
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
}

impl Remote {
    pub(super) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Check(args) => args.run(),
            Self::Health(args) => args.run(),
            Self::Peek(args) => args.run(),
            Self::Reset(args) => args.run(),
            Self::Grant(args) => args.run(),
            Self::Ban(args) => args.run(),
            Self::Unban(args) => args.run(),
            Self::Override(command) => command.run(),
            Self::Policies(args) => args.run(),
            Self::Top(args) => args.run(),
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        if error.is_input() { Self::Input(error.to_string()) } else { Self::Service(error.to_string()) }
    }
}
