//! Takes and gifts over several slots of a cluster: one call for each slot, in parallel, and what comes of them together.

use std::collections::BTreeMap;

use sluicegate_lua::{Charge, CheckTaken, Gift, Give, Level, Take, Taken, Unit, UnitTaken};
use sluicegate_wire::Cost;

use super::{StoreError, cluster::Slot};

/// A take cut by slots.
#[derive(Debug)]
pub(super) struct Split {
    takes: u64,
    /// How many charges each unit has.
    charges: Vec<usize>,
    parts: Vec<Part>,
}

/// What one slot's call takes.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) slot: Slot,
    pub(super) take: Take,
    /// For each unit of the part, its place in the whole, and the places of its charges there.
    places: Vec<(usize, Vec<usize>)>,
}

/// What came of all parts.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) taken: Result<Taken, StoreError>,
    /// What was taken in vain, and must be given back.
    pub(super) give_back: Vec<(Slot, Give)>,
}

impl Split {
    pub(super) fn of(whole: &Take) -> Self {
        let mut parts: BTreeMap<Slot, Part> = BTreeMap::new();
        for (unit_at, unit) in whole.units.iter().enumerate() {
            for (charge_at, charge) in unit.charges.iter().enumerate() {
                let slot = Slot::of(&charge.keys);
                let part = parts.entry(slot).or_insert_with(|| Part {
                    slot,
                    take: Take { takes: whole.takes, units: Vec::new() },
                    places: Vec::new(),
                });
                part.add(unit_at, unit.enforced, charge_at, charge);
            }
        }
        let charges = whole.units.iter().map(|unit| unit.charges.len()).collect();
        Self { takes: whole.takes, charges, parts: parts.into_values().collect() }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What came of the whole: the takes that every part of a unit granted. A shadow unit that got no answer has no
    /// checks; an enforced one makes the whole fail.
    pub(super) fn join(&self, answers: Vec<Result<Taken, StoreError>>) -> Joined {
        let mut failed = None;
        let mut found: Vec<Vec<Option<CheckTaken>>> = self.charges.iter().map(|charges| vec![None; *charges]).collect();
        let mut granted = vec![self.takes; self.charges.len()];
        let mut granted_by_part = Vec::with_capacity(self.parts.len());
        for (part, answer) in self.parts.iter().zip(answers) {
            match answer {
                Ok(taken) => {
                    granted_by_part.push(taken.units.iter().map(|unit| unit.granted).collect());
                    for ((unit_at, charges_at), unit) in part.places.iter().zip(taken.units) {
                        granted[*unit_at] = granted[*unit_at].min(unit.granted);
                        for (charge_at, check) in charges_at.iter().zip(unit.checks) {
                            found[*unit_at][*charge_at] = Some(check);
                        }
                    }
                }
                Err(error) => {
                    granted_by_part.push(Vec::new());
                    for (unit_at, _) in &part.places {
                        granted[*unit_at] = 0;
                    }
                    if part.take.units.iter().any(|unit| unit.enforced) {
                        failed = Some(error);
                    }
                }
            }
        }
        let parts = self.parts.iter().zip(&granted_by_part);
        let give_back = parts.filter_map(|(part, by_part)| {
            let give = part.in_vain(by_part, &granted, &found);
            (!give.gifts.is_empty()).then_some((part.slot, give))
        });
        let give_back = give_back.collect();
        let units = granted.into_iter().zip(found).map(|(granted, checks)| UnitTaken {
            granted,
            checks: checks.into_iter().collect::<Option<_>>().unwrap_or_default(),
        });
        let taken = Taken { takes: self.takes, units: units.collect() };
        Joined { taken: failed.map_or(Ok(taken), Err), give_back }
    }
}

impl Part {
    fn add(&mut self, unit_at: usize, enforced: bool, charge_at: usize, charge: &Charge) {
        if self.places.last().is_none_or(|(last, _)| *last != unit_at) {
            self.places.push((unit_at, Vec::new()));
            self.take.units.push(Unit { charges: Vec::new(), enforced });
        }
        if let (Some((_, charges_at)), Some(unit)) = (self.places.last_mut(), self.take.units.last_mut()) {
            charges_at.push(charge_at);
            unit.charges.push(charge.clone());
        }
    }

    /// What this part granted beyond what all parts did.
    fn in_vain(&self, by_part: &[u64], granted: &[u64], found: &[Vec<Option<CheckTaken>>]) -> Give {
        let mut gifts = Vec::new();
        for ((unit, (unit_at, charges_at)), by_part) in self.take.units.iter().zip(&self.places).zip(by_part) {
            let too_many = by_part.saturating_sub(granted[*unit_at]);
            for (charge, charge_at) in unit.charges.iter().zip(charges_at) {
                let tokens = charge.cost.tokens().saturating_mul(too_many);
                if let (1.., Ok(cost), Some(check)) = (tokens, Cost::new(tokens), &found[*unit_at][*charge_at]) {
                    let stamps = check.levels.iter().map(Level::stamp).collect();
                    gifts.push(Gift { charge: Charge { cost, ..charge.clone() }, stamps });
                }
            }
        }
        Give { gifts }
    }
}

/// A give cut by slots: each slot's part, with the places of its gifts in the whole.
pub(super) fn split_give(whole: &Give) -> Vec<(Slot, Give, Vec<usize>)> {
    let mut parts: BTreeMap<Slot, (Give, Vec<usize>)> = BTreeMap::new();
    for (at, gift) in whole.gifts.iter().enumerate() {
        let (give, places) = parts.entry(Slot::of(&gift.charge.keys)).or_default();
        give.gifts.push(gift.clone());
        places.push(at);
    }
    parts.into_iter().map(|(slot, (give, places))| (slot, give, places)).collect()
}

#[cfg(test)]
mod tests;
