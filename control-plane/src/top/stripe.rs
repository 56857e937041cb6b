//! One thread's share of the counts, in two panes of time.

use std::collections::HashMap;

use sluicegate_wire::Name;

use super::{Outcome, sketch::Sketch};

/// What some threads counted in the current pane and the one before it.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    pane: u64,
    current: HashMap<Name, Counts>,
    previous: HashMap<Name, Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    takes: Sketch,
    denials: Sketch,
}

impl Counts {
    fn of(&mut self, outcome: Outcome) -> &mut Sketch {
        match outcome {
            Outcome::Taken => &mut self.takes,
            Outcome::Denied => &mut self.denials,
        }
    }
}

impl Stripe {
    pub(super) fn record(&mut self, pane: u64, policy: &Name, outcome: Outcome, hash: u64, subject: &str, checks: u64) {
        self.turn_to(pane);
        if !self.current.contains_key(policy) {
            self.current.insert(policy.clone(), Counts::default());
        }
        if let Some(counts) = self.current.get_mut(policy) {
            counts.of(outcome).add(hash, subject, checks);
        }
    }

    /// The sketches of a policy that still count, with the stripe as of `pane`.
    pub(super) fn sketches(&mut self, pane: u64, policy: &str, outcome: Outcome) -> impl Iterator<Item = &Sketch> {
        self.turn_to(pane);
        let panes = [self.current.get_mut(policy), self.previous.get_mut(policy)];
        panes.into_iter().flatten().map(move |counts| &*counts.of(outcome))
    }

    /// Forgets what is older than the pane before; with it policies that are no more.
    fn turn_to(&mut self, pane: u64) {
        // A thread whose time was read before another's turned may be late by a pane; it counts in the current one.
        if pane > self.pane {
            let current = std::mem::take(&mut self.current);
            self.previous = if pane == self.pane + 1 { current } else { HashMap::new() };
            self.pane = pane;
        }
    }
}
