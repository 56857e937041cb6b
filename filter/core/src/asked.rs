//! What is remembered of a request while its answer is awaited.

use std::rc::Rc;

use sluicegate_wire::CheckRequest;

use crate::{
    Measure, Rule, Timeout,
    lease::{Lease, Leased},
};

/// A question and the rules that it is made of: one, and those before it that said `continue`.
#[derive(Clone, Debug)]
pub struct Asked {
    /// At least one, until leases have answered all of their checks.
    rules: Vec<AskedRule>,
    /// The last of them, the most particular: it stands for all in the log and where no other decided.
    last: Rc<Rule>,
    /// The checks: those of the first rule, then those of the next.
    pub question: CheckRequest,
    /// How long the answer may take: the shortest that one of the rules allows.
    pub timeout: Timeout,
    /// Whether the client speaks gRPC.
    pub grpc: bool,
    /// What to count, whatever the answer is.
    pub measures: Vec<Measure>,
    /// For each check how it may be leased for.
    pub(crate) leases: Vec<Option<Lease>>,
    /// What leases have answered already.
    pub(crate) leased: Vec<Leased>,
}

/// A rule and how many checks of the question are its own, at least one.
#[derive(Clone, Debug)]
pub(crate) struct AskedRule {
    pub(crate) rule: Rc<Rule>,
    pub(crate) checks: usize,
}

impl Asked {
    /// A question; the measures alone when no rule asks anything.
    pub(crate) fn new(
        rules: Vec<AskedRule>,
        question: CheckRequest,
        leases: Vec<Option<Lease>>,
        measures: Vec<Measure>,
        grpc: bool,
    ) -> Result<Self, Vec<Measure>> {
        let Some(last) = rules.last().map(|last| Rc::clone(&last.rule)) else { return Err(measures) };
        let timeout = shortest(&rules, &last);
        Ok(Self { rules, last, question, timeout, grpc, measures, leases, leased: Vec::new() })
    }

    /// Leaves the checks for which `kept` says so. A rule without any has no say in how the answer is waited for.
    pub(crate) fn keep(&mut self, kept: &[bool]) {
        let mut all = kept.iter();
        for asked in &mut self.rules {
            asked.checks = all.by_ref().take(asked.checks).filter(|kept| **kept).count();
        }
        self.rules.retain(|asked| asked.checks > 0);
        let mut all = kept.iter();
        self.question.checks.retain(|_| all.next().is_some_and(|kept| *kept));
        self.timeout = shortest(&self.rules, &self.last);
    }

    /// The last of the rules.
    #[must_use]
    pub const fn last(&self) -> &Rc<Rule> {
        &self.last
    }

    /// The rule that a check belongs to.
    pub(crate) fn rule_of(&self, check: usize) -> &Rc<Rule> {
        let mut end = 0_usize;
        let of = |asked: &&AskedRule| {
            end = end.saturating_add(asked.checks);
            check < end
        };
        self.rules.iter().find(of).map_or(&self.last, |asked| &asked.rule)
    }

    /// Each rule with its checks.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&Rc<Rule>, &[sluicegate_wire::Check])> {
        let mut rest = self.question.checks.as_slice();
        self.rules.iter().map(move |asked| {
            let (own, after) = rest.split_at_checked(asked.checks).unwrap_or((rest, &[]));
            rest = after;
            (&asked.rule, own)
        })
    }
}

fn shortest(rules: &[AskedRule], last: &Rule) -> Timeout {
    rules.iter().map(|asked| asked.rule.timeout).min().unwrap_or(last.timeout)
}
