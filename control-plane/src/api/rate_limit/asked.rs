//! From descriptors to checks.

use sluicegate_lua::Rule;
use sluicegate_wire::{Check, Cost, Part, Subject};
use tonic::Status;

use super::message::{Descriptor, RateLimitRequest};
use crate::{
    api::MAX_CHECKS,
    config::{KeyPart, Mapping, Outcome, RateLimitService},
};

/// What a call asks for.
#[derive(Debug)]
pub(super) struct Asked<'a> {
    /// Whether the domain is configured.
    pub(super) domain_known: bool,
    /// What each descriptor is, in order.
    pub(super) descriptors: Vec<Ask<'a>>,
    /// What to take.
    pub(super) checks: Vec<Check>,
    /// What to give back.
    pub(super) refunds: Vec<Check>,
}

/// What a descriptor is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ask<'a> {
    /// Nothing that is limited: no mapping is for it.
    Unmatched,
    /// Allowed without asking.
    Unlimited,
    /// One of the checks, by its index, and the policy.
    Check(usize, &'a sluicegate_lua::Policy),
    /// One of the refunds.
    Refund,
}

impl<'a> Asked<'a> {
    /// Reads a call.
    ///
    /// # Errors
    /// When it says nothing, asks too much at once, or what can't be done, in terms of gRPC.
    pub(super) fn read(question: &RateLimitRequest, service: &'a RateLimitService) -> Result<Self, Status> {
        if service.domains.is_empty() {
            return Err(Status::unimplemented("there is no rate_limit_service in the service's configuration; add it"));
        }
        if question.domain.is_empty() {
            return Err(Status::invalid_argument("domain: is empty; name the domain"));
        }
        let count = question.descriptors.len();
        if count == 0 {
            return Err(Status::invalid_argument("descriptors: there are none; send at least one"));
        }
        if count > MAX_CHECKS {
            let message = format!("descriptors: there are {count}, the most is {MAX_CHECKS}; send several requests");
            return Err(Status::invalid_argument(message));
        }
        let mappings = service.domains.get(&question.domain);
        if mappings.is_none() && service.refuse_unknown_domain {
            let domain: String = question.domain.chars().take(MAX_DOMAIN_CHARS).collect();
            return Err(Status::not_found(format!("domain: there is no {domain:?} in rate_limit_service.domains")));
        }
        let mut asked =
            Self { domain_known: mappings.is_some(), descriptors: Vec::new(), checks: Vec::new(), refunds: Vec::new() };
        for (index, descriptor) in question.descriptors.iter().enumerate() {
            let mapping = mappings.into_iter().flatten().find(|mapping| matches(mapping, descriptor));
            let ask = asked.ask(index, mapping, descriptor, question.hits_addend)?;
            asked.descriptors.push(ask);
        }
        Ok(asked)
    }

    fn ask(
        &mut self,
        index: usize,
        mapping: Option<&'a Mapping>,
        descriptor: &Descriptor,
        hits_addend: u32,
    ) -> Result<Ask<'a>, Status> {
        let Some(mapping) = mapping else { return Ok(Ask::Unmatched) };
        let Outcome::Limited { policy, key, shadow } = &mapping.outcome else { return Ok(Ask::Unlimited) };
        // No bucket holds more than the largest cost, so that it is denied either way.
        let hits = descriptor.hits_addend.unwrap_or(u64::from(hits_addend.max(1)));
        let cost = Cost::new(hits).unwrap_or(Cost::MAX);
        let check = Check { policy: policy.name().to_string(), key: subject(key, descriptor), cost, shadow: *shadow };
        if !descriptor.is_negative_hits {
            self.checks.push(check);
            return Ok(Ask::Check(self.checks.len() - 1, policy));
        }
        // What was taken before its window ended must not be given to the next, and nothing here says when it was.
        if policy.limits().iter().any(|limit| matches!(limit.rule, Rule::Quota(_))) {
            let message = format!(
                "descriptors[{index}].is_negative_hits: the policy {} has a quota, which needs the answer's charge; \
                 refund through /v1/refund",
                policy.name()
            );
            return Err(Status::failed_precondition(message));
        }
        // Shadow checks take from the same buckets.
        self.refunds.push(Check { shadow: false, ..check });
        Ok(Ask::Refund)
    }
}

/// The longest part of an unknown domain's name that is said back, in characters.
const MAX_DOMAIN_CHARS: usize = 64;

fn matches(mapping: &Mapping, descriptor: &Descriptor) -> bool {
    mapping.matches(descriptor.entries.iter().map(|entry| (&*entry.key, &*entry.value)))
}

fn subject(key: &[KeyPart], descriptor: &Descriptor) -> Subject {
    let parts = key.iter().filter_map(|part| {
        let value = &descriptor.entries.get(part.entry)?.value;
        Some(if part.secret { Part::Secret(value.clone()) } else { Part::bytes(value.clone()) })
    });
    // The configuration has at least one part.
    Subject::new(parts.collect()).unwrap_or_else(|_| Subject::text(""))
}
