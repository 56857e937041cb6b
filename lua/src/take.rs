//! `lua/take.lua`: takes from several buckets in one step.

use sluicegate_wire::Cost;

use crate::{
    Bucket, Level, Refill,
    reply::{Reply, ReplyError},
    script::{RunError, TAKE},
};

/// One call of the take script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Take {
    /// How many equal takes to try, one after another; at least 1.
    pub takes: u64,
    /// What each take takes.
    pub units: Vec<Unit>,
}

/// Charges that are made together or not at all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// The charges.
    pub charges: Vec<Charge>,
}

/// One bucket and what to take from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The bucket's key; all keys of one call are in one slot, where the store is a cluster.
    pub key: String,
    /// The bucket's numbers.
    pub bucket: Bucket,
    /// The tokens to take.
    pub cost: Cost,
}

/// What the script answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The store's time, in ms since 1970.
    pub now_ms: u64,
    /// One for each unit, in order.
    pub units: Vec<UnitTaken>,
}

/// What came of one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitTaken {
    /// How many of the takes were granted: always the first ones.
    pub granted: u64,
    /// Each charge's bucket as it was before.
    pub levels: Vec<Level>,
}

impl Take {
    /// Runs the script in one round trip (two when the server doesn't have it yet).
    pub async fn run<C>(&self, connection: &mut C) -> Result<Taken, RunError>
    where
        C: redis::aio::ConnectionLike,
    {
        let mut call = TAKE.prepare_invoke();
        for charge in self.charges() {
            call.key(&charge.key);
        }
        call.arg(self.takes);
        for unit in &self.units {
            call.arg(unit.charges.len());
            for Charge { bucket, cost, .. } in &unit.charges {
                let mode = match bucket.mode() {
                    Refill::Greedy => "g",
                    Refill::Interval => "i",
                };
                call.arg(mode).arg(cost.tokens());
                call.arg(bucket.capacity()).arg(bucket.refill()).arg(bucket.per_ms());
            }
        }
        let reply: Vec<i64> = call.invoke_async(connection).await?;
        Ok(self.read(&reply)?)
    }

    fn charges(&self) -> impl Iterator<Item = &Charge> {
        self.units.iter().flat_map(|unit| &unit.charges)
    }

    fn read(&self, reply: &[i64]) -> Result<Taken, ReplyError> {
        let mut reply = Reply::new(reply);
        let now_ms = reply.next()?;
        let mut units = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let granted = reply.next()?;
            let mut level = || Ok(Level { tokens: reply.next()?, last_ms: reply.next()?, part: reply.next()? });
            let levels = unit.charges.iter().map(|_| level()).collect::<Result<_, _>>()?;
            units.push(UnitTaken { granted, levels });
        }
        reply.end()?;
        Ok(Taken { now_ms, units })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(charges: &[usize]) -> Take {
        let bucket = Bucket::new(5, 1, 1, Refill::Greedy).unwrap();
        let charge = Charge { key: "k".into(), bucket, cost: Cost::ONE };
        Take { takes: 1, units: charges.iter().map(|&count| Unit { charges: vec![charge.clone(); count] }).collect() }
    }

    #[test]
    fn a_reply_is_read_unit_by_unit() {
        let taken = take(&[2, 1]).read(&[9, 1, 5, 9, 0, 4, 8, 1, 0, 0, 7, 0]).unwrap();
        assert_eq!(taken.now_ms, 9);
        assert_eq!(taken.units[0].granted, 1);
        assert_eq!(taken.units[0].levels[1], Level { tokens: 4, last_ms: 8, part: 1 });
        assert_eq!(taken.units[1], UnitTaken { granted: 0, levels: vec![Level { tokens: 0, last_ms: 7, part: 0 }] });
    }

    #[test]
    fn a_reply_of_another_shape_is_refused() {
        for reply in [&[][..], &[9], &[9, 1, 5, 9], &[9, 1, 5, 9, 0, 1], &[9, -1, 5, 9, 0]] {
            assert_eq!(take(&[1]).read(reply), Err(ReplyError), "{reply:?}");
        }
    }
}
