//! What came of a take, and what that means for each of several joined ones.

use sluicegate_wire::Reason;

use crate::{Judgement, Level, Take, Unit};

/// What the take script answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// How many equal takes were tried.
    pub takes: u64,
    /// One for each unit, in order.
    pub units: Vec<UnitTaken>,
}

/// What came of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTaken {
    /// How many of the takes were granted: always the first ones.
    pub granted: u64,
    /// What was found for each charge before the takes.
    pub checks: Vec<CheckTaken>,
}

/// What was found for one charge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckTaken {
    /// The time of the server that looked, in ms since 1970: charges of one unit may be on several servers.
    pub now_ms: u64,
    /// Whether the subject has numbers of its own.
    pub overridden: bool,
    /// How long a ban still lasts, in ms; 0 without one.
    pub ban_left_ms: u64,
    /// Denials counted towards a ban before the takes.
    pub denials: u64,
    /// Each limit.
    pub levels: Vec<Level>,
}

impl Taken {
    /// The judgements of each limit of each charge of `take.units[unit]` on its `nth` take, from 1.
    #[must_use]
    pub fn judge(&self, take: &Take, unit: usize, nth: u64) -> Vec<Vec<Judgement>> {
        let (Some(asked), Some(taken)) = (take.units.get(unit), self.units.get(unit)) else {
            return Vec::new();
        };
        let counted = taken.counted_denials(asked, self.takes).min(nth.saturating_sub(taken.granted));
        let charges = asked.charges.iter().zip(&taken.checks);
        charges
            .map(|(charge, check)| {
                let judge = |level: &Level| level.judge(check.now_ms, charge.cost, taken.granted, nth);
                let mut judged: Vec<Judgement> = check.levels.iter().map(judge).collect();
                let denies = charge.cost.tokens() > 0 && judged.iter().any(|judgement| !judgement.allowed());
                let struck_ms = match charge.policy.ban() {
                    Some(ban) if denies && counted > 0 && check.denials + counted >= ban.after() => ban.for_ms(),
                    _ => 0,
                };
                let banned_ms = check.ban_left_ms.max(struck_ms);
                if banned_ms > 0 {
                    judged.iter_mut().for_each(|judgement| judgement.ban(banned_ms));
                }
                judged
            })
            .collect()
    }
}

impl UnitTaken {
    /// How many denials the script counted: of equal denials one after another, those up to the first ban.
    fn counted_denials(&self, asked: &Unit, takes: u64) -> u64 {
        if !asked.enforced || self.checks.iter().any(|check| check.ban_left_ms > 0) {
            return 0;
        }
        let mut counted = takes.saturating_sub(self.granted);
        for (charge, check) in asked.charges.iter().zip(&self.checks) {
            let cost = charge.cost.tokens();
            let denies = |level: &Level| level.tokens().saturating_sub(self.granted.saturating_mul(cost)) < cost;
            if let Some(ban) = charge.policy.ban()
                && check.levels.iter().any(denies)
            {
                counted = counted.min(ban.after().saturating_sub(check.denials).max(1));
            }
        }
        counted
    }
}

impl Judgement {
    fn ban(&mut self, ban_ms: u64) {
        if self.reason != Reason::Never {
            self.reason = Reason::Banned;
            self.retry_after_ms = self.retry_after_ms.map(|wait_ms| wait_ms.max(ban_ms));
        }
    }
}
