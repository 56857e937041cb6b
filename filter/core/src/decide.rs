//! A request comes in: pass it, or ask the service first.

use crate::{Callout, Config, Request, matching::Target};

/// What to do with a request.
#[derive(Debug)]
pub enum Decision {
    /// No limit is for this request: pass it.
    Pass,
    /// Hold the request, make this callout, and let [`Worker`](crate::Worker) decide.
    Ask(Callout),
}

/// Finds the first rule that matches and, unless it exempts the request, builds the question.
#[must_use]
pub fn decide(config: &Config, request: &dyn Request) -> Decision {
    let target = Target::of(request);
    match config.rules.iter().find(|rule| rule.matcher.matches(&target)) {
        Some(rule) if !rule.limits.is_empty() => Decision::Ask(Callout::build(config, rule, request)),
        Some(_) | None => Decision::Pass,
    }
}
