//! A request comes in: pass it, reject it, or ask the service first.

use std::rc::Rc;

use sluicegate_wire::{Check, CheckRequest, Pepper, Subject};

use crate::{
    Asked, Config, Limit, Measure, Metric, Request, Rule, VerdictLabel, asked::AskedRule, doubt::Doubt, key::Keyed,
    lease::Lease, request::is_grpc, view::View,
};

/// What to do with a request.
#[derive(Debug)]
pub enum Decision {
    /// No limit is for this request: pass it.
    Pass {
        /// What to count.
        measures: Vec<Measure>,
    },
    /// It lacks a value that a limit demands: reject it.
    Deny {
        /// The rule with that limit.
        rule: Rc<Rule>,
        /// Whether the client speaks gRPC.
        grpc: bool,
    },
    /// Ask this, and let [`Worker`](crate::Worker) decide.
    Ask(Asked),
}

/// Goes through the rules up to the first that matches and doesn't say `continue`, and joins the questions of all that
/// matched.
#[must_use]
pub fn decide(config: &Config, request: &dyn Request) -> Decision {
    let view = View::of(request);
    let mut joined = Joined::default();
    for rule in &config.rules {
        let doubt = Doubt::under(!rule.limits.is_empty());
        if !rule.matcher.matches(&view, &doubt) {
            continue;
        }
        if joined.add(rule, &view, config.key_pepper.as_ref()).is_err() {
            return Decision::Deny { rule: Rc::clone(rule), grpc: is_grpc(request.headers()) };
        }
        if !rule.go_on && !doubt.matched() {
            break;
        }
    }
    joined.decision(is_grpc(request.headers()))
}

/// What the rules that matched so far ask.
#[derive(Default)]
struct Joined {
    rules: Vec<AskedRule>,
    checks: Vec<Check>,
    leases: Vec<Option<Lease>>,
    measures: Vec<Measure>,
}

/// That the request lacks a value that a limit demands.
struct Lacking;

impl Joined {
    fn add(&mut self, rule: &Rc<Rule>, view: &View<'_>, pepper: Option<&Pepper>) -> Result<(), Lacking> {
        let before = self.checks.len();
        for limit in &rule.limits {
            let key = match limit.key.of(view, pepper) {
                Keyed::Subject(key) => key,
                Keyed::Skip => {
                    self.measures.push(Metric::Skipped { rule: rule.name.clone() }.once());
                    continue;
                }
                Keyed::Deny if limit.shadow => {
                    let verdict = VerdictLabel::MissingKey;
                    self.measures.push(Metric::Shadow { rule: rule.name.clone(), verdict }.once());
                    continue;
                }
                Keyed::Deny => return Err(Lacking),
            };
            let check = self.check(rule, limit, view, key);
            self.checks.push(check);
            self.leases.push(limit.lease);
        }
        // A rule that asks nothing about this request has no say in how its answer is waited for.
        let asked = self.checks.len().saturating_sub(before);
        if asked > 0 {
            self.rules.push(AskedRule { rule: Rc::clone(rule), checks: asked });
        }
        Ok(())
    }

    fn check(&mut self, rule: &Rule, limit: &Limit, view: &View<'_>, key: Subject) -> Check {
        let (policy, cost) = (limit.policy.of(view), limit.cost.of(view));
        if policy.fell_back || cost.fell_back {
            self.measures.push(Metric::Fallbacks { rule: rule.name.clone() }.once());
        }
        Check { policy: policy.value.as_str().to_owned(), key, cost: cost.value, shadow: limit.shadow }
    }

    fn decision(self, grpc: bool) -> Decision {
        let Self { rules, checks, leases, measures } = self;
        match Asked::new(rules, CheckRequest { checks }, leases, measures, grpc) {
            Ok(asked) => Decision::Ask(asked),
            Err(measures) => Decision::Pass { measures },
        }
    }
}
