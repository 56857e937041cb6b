//! `lua/give.lua`: gives tokens back to limits.

use crate::{Answer, Call, Charge, ReplyError, charge::Coverage, reply::Reply, script::GIVE};

/// Refunds of what was taken, or grants: all in one step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Give {
    /// What to give to whom.
    pub gifts: Vec<Gift>,
}

/// Tokens for a policy's limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gift {
    /// Where to; its cost is how many tokens.
    pub charge: Charge,
    /// For a refund: the [`Level::stamp`](crate::Level::stamp) of each limit when it was charged; a quota gets nothing
    /// back once its window is over. For a grant: empty.
    pub stamps: Vec<u64>,
}

/// What came of giving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// For each gift the tokens that each limit got: fewer than asked where it is full.
    pub tokens: Vec<Vec<u64>>,
}

impl Give {
    /// The call, with the calendar around `now_ms` by the caller's best knowledge of the store's clock.
    #[must_use]
    pub fn call(&self, now_ms: u64) -> Call {
        let mut coverage = Coverage::ALL;
        let mut call = Call::new(&GIVE);
        for _ in 0..2 {
            call.number(0);
        }
        for Gift { charge, stamps } in &self.gifts {
            call.number(charge.cost.tokens());
            charge.add_to(&mut call, now_ms, &mut coverage);
            for index in 0..charge.policy.limits().len() {
                call.number(stamps.get(index).copied().unwrap_or(0));
            }
        }
        call.args[0] = coverage.from_ms.to_string();
        call.args[1] = coverage.until_ms.to_string();
        call
    }

    /// Reads the script's reply.
    pub fn read(&self, reply: &[i64]) -> Result<Answer<Given>, ReplyError> {
        let mut reply = Reply::new(reply);
        let now_ms = reply.next()?;
        if reply.is_empty() && !self.gifts.is_empty() {
            return Ok(Answer::OtherTime { now_ms });
        }
        let mut given = |gift: &Gift| gift.charge.policy.limits().iter().map(|_| reply.next()).collect();
        let tokens = self.gifts.iter().map(&mut given).collect::<Result<_, _>>()?;
        reply.end()?;
        Ok(Answer::Done(Given { tokens }))
    }
}
