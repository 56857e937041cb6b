//! What is remembered of a request while its answer is awaited.

use std::rc::Rc;

use sluicegate_wire::CheckRequest;

use crate::{Measure, Rule, Timeout};

/// A question and the rules that it is made of: one, and those before it that said `continue`.
#[derive(Clone, Debug)]
pub struct Asked {
    /// At least one.
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
        measures: Vec<Measure>,
        grpc: bool,
    ) -> Result<Self, Vec<Measure>> {
        let Some(last) = rules.last().map(|last| Rc::clone(&last.rule)) else { return Err(measures) };
        let timeout = rules.iter().map(|asked| asked.rule.timeout).min().unwrap_or(last.timeout);
        Ok(Self { rules, last, question, timeout, grpc, measures })
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
