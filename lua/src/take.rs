//! `lua/take.lua`: takes from several limits in one step.

use crate::{
    Answer, Call, Charge, CheckTaken, Level, ReplyError, Taken, UnitTaken, charge::Coverage, reply::Reply, script::TAKE,
};

/// One call of the take script.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// How many equal takes to try, one after another; at least 1.
    pub takes: u64,
    /// What each of them takes.
    pub units: Vec<Unit>,
}

/// Charges that are made together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Unit {
    /// The charges.
    pub charges: Vec<Charge>,
    /// Whether this is what the call is decided by: denials of shadow checks don't count towards bans.
    pub enforced: bool,
}

impl Take {
    /// The call, with the calendar around `now_ms` by the caller's best knowledge of the store's clock.
    #[must_use]
    pub fn call(&self, now_ms: u64) -> Call {
        let mut coverage = Coverage::ALL;
        let mut call = Call::new(&TAKE);
        for _ in 0..2 {
            call.number(0);
        }
        call.number(self.takes);
        for unit in &self.units {
            call.number(u64::from(unit.enforced));
            call.number(unit.charges.len() as u64);
            for charge in &unit.charges {
                call.number(charge.cost.tokens());
                charge.add_to(&mut call, now_ms, &mut coverage);
            }
        }
        call.args[0] = coverage.from_ms.to_string();
        call.args[1] = coverage.until_ms.to_string();
        call
    }

    /// Reads the script's reply.
    pub fn read(&self, reply: &[i64]) -> Result<Answer<Taken>, ReplyError> {
        let mut reply = Reply::new(reply);
        let now_ms = reply.next()?;
        if reply.is_empty() && !self.units.is_empty() {
            return Ok(Answer::OtherTime { now_ms });
        }
        let mut units = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let granted = reply.next()?;
            let checks =
                unit.charges.iter().map(|charge| read_check(charge, now_ms, &mut reply)).collect::<Result<_, _>>()?;
            units.push(UnitTaken { granted, checks });
        }
        reply.end()?;
        Ok(Answer::Done(Taken { takes: self.takes, units }))
    }
}

fn read_check(charge: &Charge, now_ms: u64, reply: &mut Reply<'_>) -> Result<CheckTaken, ReplyError> {
    let overridden = reply.next()? == 1;
    let ban_left_ms = reply.next()?;
    let denials = reply.next()?;
    let mut levels = Vec::with_capacity(charge.policy.limits().len());
    for limit in charge.policy.limits() {
        let numbers = [reply.next()?, reply.next()?, reply.next()?];
        let own = if overridden { Some([reply.next()?, reply.next()?, reply.next()?]) } else { None };
        levels.push(Level::new(&limit.rule, numbers, own)?);
    }
    Ok(CheckTaken { now_ms, overridden, ban_left_ms, denials, levels })
}
