//! `lua/ban.lua`: bans by hand.

use sluicegate_wire::Name;

use crate::{
    Call, Keys, MAX_FILL_MS, Policy,
    script::{BAN, RESET},
};

/// A ban that somebody imposes, rather than too many denials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanNow {
    for_ms: u64,
}

/// Why a subject can't be banned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BanNowError {
    /// Checks of such a policy don't look for bans.
    #[error("policy {0} has no ban, so its checks look for none; add ban: {{ after, within, for }} to it")]
    NoBan(Name),
    /// A time that is nothing, or that nothing written is kept for.
    #[error("is {0} ms: it must be from 1 ms to 366 days")]
    Lasts(u64),
}

impl BanNow {
    /// A ban of this length; without one, of the policy's.
    pub fn new(policy: &Policy, for_ms: Option<u64>) -> Result<Self, BanNowError> {
        let ban = policy.ban().ok_or_else(|| BanNowError::NoBan(policy.name().clone()))?;
        let for_ms = for_ms.unwrap_or_else(|| ban.for_ms());
        if for_ms == 0 || for_ms > MAX_FILL_MS {
            return Err(BanNowError::Lasts(for_ms));
        }
        Ok(Self { for_ms })
    }

    /// How long it lasts, in ms.
    #[must_use]
    pub const fn for_ms(&self) -> u64 {
        self.for_ms
    }

    /// The call that imposes it: denials counted so far are forgotten, and a ban that lasts is replaced.
    #[must_use]
    pub fn call(&self, keys: &Keys) -> Call {
        Call { script: &BAN, keys: vec![keys.ban()], args: vec![self.for_ms.to_string()] }
    }

    /// The call that lifts a subject's ban, whoever imposed it, and forgets the denials that are counted towards one; its
    /// reply is that of a [`Reset`](crate::Reset).
    #[must_use]
    pub fn lift(keys: &Keys) -> Call {
        Call { script: &RESET, keys: vec![keys.ban()], args: Vec::new() }
    }
}
