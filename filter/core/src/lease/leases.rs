//! A worker's part in the leases of its proxy.

use sluicegate_wire::{Check, LeaseAnswer, LimitResult, Name, Reason};

use super::{
    Background, Lease, TICK_MS,
    slot::{Batch, KnownLimit, MAX_WAIT_MS, Slot},
    table::{change_set, set_of, visit},
};
use crate::{
    Asked, Failure, FailureKind, Measure, Metric, Outcome, Timeout, answer::read_lease, config::Service,
    deny_cache::later, worker::Surroundings,
};

/// Subjects whose policy and key are longer, in bytes, are not leased for.
const MAX_ID_BYTES: usize = 512;
/// How long the proxy waits for a lease, in ms. No request does, so it has more time than one would give it.
const TIMEOUT_MS: u32 = 1_000;
/// How long it may take until somebody else asks, in ms.
const ANSWER_MS: u64 = TIMEOUT_MS as u64 + TICK_MS + 500;
/// The shortest and longest pause in ms after a lease of no token, and that after a failure.
const NONE_MS: (u64, u64) = (100, 1_000);
/// Sets that one tick looks through: all that there can be in a third of a second.
const SETS_A_TICK: usize = 8;

/// What one worker has to do about leases.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    asking: Vec<LeaseTicket>,
    /// What to give back, of which subject.
    unused: Vec<(Vec<u8>, Batch)>,
    /// Sets in which it saw tokens, the one that was looked through longest ago last.
    held: Vec<u32>,
    /// Policies that can't be leased from, and until when they are believed not to be.
    refused: Vec<(String, u64)>,
}

/// A lease under way.
#[derive(Clone, Debug)]
pub struct LeaseTicket {
    pub(super) id: Vec<u8>,
    policy: String,
    rule: Name,
    pub(super) max: u64,
    pub(super) for_ms: u64,
    /// The moment before it was asked for: its time counts from there.
    since_ms: u64,
    /// What the slot knows it by.
    asked_until_ms: u64,
}

impl LeaseTicket {
    /// The rule that it is for.
    pub(crate) const fn rule(&self) -> &Name {
        &self.rule
    }
}

/// Tokens that a request took from a lease.
#[derive(Clone, Debug)]
pub(crate) struct Leased {
    id: Vec<u8>,
    tokens: u64,
    until_ms: u64,
    /// What its limit says, by what is known of it.
    pub(crate) result: LimitResult,
}

impl Leases {
    /// Takes what leases have for a question, which is left with the checks that have to be asked about. `may_ask` says
    /// whether there is any use in asking for more.
    pub(crate) fn serve(&mut self, asked: &mut Asked, may_ask: bool, around: Surroundings<'_>) {
        let leases = std::mem::take(&mut asked.leases);
        if leases.iter().all(Option::is_none) {
            return;
        }
        let mut kept = Vec::with_capacity(leases.len());
        for (at, lease) in leases.into_iter().enumerate() {
            let leased = lease.zip(asked.question.checks.get(at)).and_then(|(lease, check)| {
                let rule = &asked.rule_of(at).name;
                let answer_ms = u64::from(asked.timeout.ms());
                self.serve_check(check, rule, lease, may_ask.then_some(answer_ms), around)
            });
            kept.push(leased.is_none());
            if let Some(leased) = leased {
                asked.measures.push(Metric::LeaseHits { rule: asked.rule_of(at).name.clone() }.once());
                asked.leased.push(leased);
            }
        }
        asked.keep(&kept);
    }

    fn serve_check(
        &mut self,
        check: &Check,
        rule: &Name,
        lease: Lease,
        answer_ms: Option<u64>,
        Surroundings { now_ms, shared }: Surroundings<'_>,
    ) -> Option<Leased> {
        let cost = check.cost.tokens();
        let id = id(check)?;
        self.refused.retain(|(_, until_ms)| now_ms < *until_ms && until_ms.abs_diff(now_ms) <= MAX_WAIT_MS);
        let answer_ms = answer_ms.filter(|_| self.refused.iter().all(|(policy, _)| *policy != check.policy));
        let for_ms = lease.for_ms.get();
        let asked_until_ms = now_ms.saturating_add(ANSWER_MS);
        let (mut served, mut max, mut holds) = (None, None, false);
        let visited = visit(shared, &id, Some(now_ms), &mut |slot| {
            slot.count(cost, for_ms, now_ms);
            let until_ms = slot.take(cost, now_ms);
            served = until_ms.map(|until_ms| (until_ms, result(slot, check, now_ms)));
            max = answer_ms.and_then(|answer_ms| slot.wants(lease, answer_ms, now_ms));
            if max.is_some() {
                slot.asked_until_ms = asked_until_ms;
            }
            holds = slot.holds(now_ms);
        });
        if !visited {
            return None;
        }
        if holds {
            self.look_after(&id);
        }
        if let Some(max) = max {
            let (policy, rule) = (check.policy.clone(), rule.clone());
            let id = id.clone();
            self.asking.push(LeaseTicket { id, policy, rule, max, for_ms, since_ms: now_ms, asked_until_ms });
        }
        served.map(|(until_ms, result)| Leased { id, tokens: cost, until_ms, result })
    }

    /// Gives back what a request took that was rejected all the same.
    pub(crate) fn give_back(&mut self, leased: &[Leased], Surroundings { now_ms, shared }: Surroundings<'_>) {
        for Leased { id, tokens, until_ms, .. } in leased {
            if !visit(shared, id, None, &mut |slot| slot.give(*tokens, *until_ms, now_ms)) {
                self.unused.push((id.clone(), Batch { tokens: *tokens, since_ms: 0, until_ms: *until_ms }));
            }
        }
    }

    /// A lease was answered, or wasn't. What to count, and why there is none.
    pub(crate) fn answered(
        &mut self,
        ticket: &LeaseTicket,
        outcome: Outcome<'_>,
        Surroundings { now_ms, shared }: Surroundings<'_>,
    ) -> (Vec<Measure>, Option<Failure>) {
        let LeaseTicket { id, rule, .. } = ticket;
        let answer = match read_lease(outcome, ticket.max) {
            Ok(answer) => answer,
            Err(failure) => {
                if failure.kind == FailureKind::Config {
                    self.refused.push((ticket.policy.clone(), now_ms.saturating_add(MAX_WAIT_MS)));
                }
                self.wait(ticket, NONE_MS.1, now_ms, shared);
                return (vec![Metric::CalloutFailures { kind: failure.kind }.once()], Some(failure));
            }
        };
        let LeaseAnswer { granted, result, .. } = answer;
        if granted == 0 {
            let wait_ms = result.retry_after_ms.unwrap_or(NONE_MS.1).clamp(NONE_MS.0, NONE_MS.1);
            self.wait(ticket, wait_ms, now_ms, shared);
            return (Vec::new(), None);
        }
        let batch = Batch {
            tokens: granted,
            since_ms: ticket.since_ms,
            until_ms: ticket.since_ms.saturating_add(ticket.for_ms).saturating_sub(Lease::GIVE_BACK_MS),
        };
        let (mut added, mut unused) = (false, batch);
        let visited = visit(shared, id, None, &mut |slot| {
            added = slot.asked_until_ms == ticket.asked_until_ms && now_ms < batch.until_ms;
            if added {
                slot.asked_until_ms = 0;
                unused = slot.take_unused(now_ms);
                slot.add(batch);
                slot.limit = known(&result, now_ms);
            }
        });
        if visited && added {
            self.look_after(id);
        } else {
            // Too late, or its slot is another's.
            unused = batch;
        }
        self.unused.push((id.clone(), unused));
        let tokens = Metric::LeasedTokens { rule: rule.clone() };
        let measures = vec![
            Metric::Leases { rule: rule.clone() }.once(),
            Measure { metric: tokens, amount: i64::try_from(granted).unwrap_or(i64::MAX) },
        ];
        (measures, None)
    }

    /// Nobody asks again for a while.
    fn wait(&self, ticket: &LeaseTicket, wait_ms: u64, now_ms: u64, shared: &dyn crate::SharedData) {
        visit(shared, &ticket.id, None, &mut |slot| {
            if slot.asked_until_ms == ticket.asked_until_ms {
                slot.asked_until_ms = now_ms.saturating_add(wait_ms);
            }
        });
    }

    fn look_after(&mut self, id: &[u8]) {
        let set = set_of(id);
        if !self.held.contains(&set) {
            self.held.push(set);
        }
    }

    /// What to send now: leases to ask for, and what nobody needs.
    pub(crate) fn tick(&mut self, service: &Service, around: Surroundings<'_>) -> Vec<Background> {
        for _ in 0..self.held.len().min(SETS_A_TICK) {
            if let Some(set) = self.held.pop()
                && self.look_through(set, around)
            {
                self.held.insert(0, set);
            }
        }
        let now_ms = around.now_ms;
        let patience = Timeout::from_ms(TIMEOUT_MS).unwrap_or_default();
        let asking = self.asking.drain(..).map(|ticket| Background::lease(service, ticket, patience));
        let unused = self.unused.drain(..).filter_map(|(id, batch)| {
            // The service refuses what comes later. Given back then, it might come on top of what has come in since.
            let left_ms = batch.until_ms.saturating_add(Lease::GIVE_BACK_MS).saturating_sub(now_ms);
            let timeout = Timeout::from_ms(u32::try_from(left_ms.min(TIMEOUT_MS.into())).ok()?).ok()?;
            let amount = i64::try_from(batch.tokens).ok().filter(|tokens| *tokens > 0)?;
            let measure = Measure { metric: Metric::LeaseReturnedTokens, amount };
            Some(Background::refund(service, &id, batch.tokens, timeout, measure))
        });
        asking.chain(unused).collect()
    }

    /// Takes what nobody needs out of a set, and says whether more is in it. Who succeeds in that gives it back.
    fn look_through(&mut self, set: u32, Surroundings { now_ms, shared }: Surroundings<'_>) -> bool {
        let (mut unused, mut holds) = (Vec::new(), false);
        let changed = change_set(shared, set, &mut |slots| {
            unused.clear();
            for slot in slots.iter_mut() {
                let batch = slot.take_unused(now_ms);
                if batch.tokens > 0 {
                    unused.push((slot.id.clone(), batch));
                }
            }
            holds = slots.iter().any(|slot| slot.holds(now_ms));
            !unused.is_empty()
        });
        if changed {
            self.unused.append(&mut unused);
        }
        holds
    }
}

/// Policy and key of a check as they stand in a question; none of one that only looks or is too long to keep.
fn id(check: &Check) -> Option<Vec<u8>> {
    if check.shadow || check.cost.tokens() == 0 {
        return None;
    }
    let mut id = format!("\"policy\":\"{}\",\"key\":", check.policy).into_bytes();
    id.append(&mut serde_json::to_vec(&check.key).ok()?);
    (id.len() <= MAX_ID_BYTES).then_some(id)
}

fn known(result: &LimitResult, now_ms: u64) -> KnownLimit {
    KnownLimit {
        name: result.limit.clone().into_bytes(),
        capacity: result.capacity,
        window_ms: result.window_ms,
        remaining: result.remaining,
        next_ms: result.next_ms,
        full_ms: result.full_ms,
        at_ms: now_ms,
    }
}

/// What is known of a limit, with what is left here.
fn result(slot: &Slot, check: &Check, now_ms: u64) -> LimitResult {
    let KnownLimit { name, capacity, window_ms, remaining, next_ms, full_ms, at_ms } = &slot.limit;
    let result = LimitResult {
        check: 0,
        policy: check.policy.clone(),
        limit: String::from_utf8_lossy(name).into_owned(),
        allowed: true,
        reason: Reason::Ok,
        capacity: *capacity,
        window_ms: *window_ms,
        remaining: remaining.saturating_add(slot.left(now_ms)).min(*capacity),
        retry_after_ms: Some(0),
        next_ms: *next_ms,
        full_ms: *full_ms,
        shadow: false,
    };
    later(&result, now_ms.saturating_sub(*at_ms))
}
