//! An independent model of the limiter: exact rationals, one subject of one policy, written from the rules and not from
//! the scripts.
//!
//! A bucket is "so many whole tokens at that instant", the instant a rational number of ms. What the scripts do in
//! units of `1 / per` tokens and parts of ms is here one division.

use std::collections::BTreeMap;

use num_rational::Ratio;
use sluicegate_lua::{Ban, Bucket, Judgement, Policy, Quota, Refill, Rule};
use sluicegate_wire::Reason;

type Ms = Ratio<i128>;

/// One subject of one policy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    limits: BTreeMap<String, State>,
    ban: Option<BanState>,
    /// Numbers of the subject's own, by limit.
    pub(crate) overrides: Option<BTreeMap<String, Rule>>,
}

#[derive(Clone, Debug)]
struct State {
    count: Count,
    expires_ms: i128,
}

#[derive(Clone, Debug)]
enum Count {
    /// Whole tokens, and when there were just those.
    Tokens { tokens: i128, since: Ms, refill: i128 },
    /// What was used, and the window it was used in.
    Used { used: i128, start_ms: i128 },
}

#[derive(Clone, Debug)]
enum BanState {
    Counting { denials: u64, since_ms: i128, expires_ms: i128 },
    Banned { struck_ms: i128, expires_ms: i128 },
}

/// What a take of several equal ones was granted, and what each of them heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) granted: u64,
    pub(crate) judgements: Vec<Vec<Judgement>>,
}

/// A limit as it is now.
struct Now {
    tokens: i128,
    capacity: i128,
    /// When a wanted number of tokens will be there.
    view: View,
}

enum View {
    Bucket { bucket: Bucket, since: Ms },
    Quota { start_ms: i128, end_ms: i128, used: i128 },
}

impl Model {
    /// `takes` equal takes of `cost`, one after another at the same instant, told apart up to the `heard`-th.
    pub(crate) fn take(&mut self, policy: &Policy, now_ms: u64, takes: u64, cost: u64, counts: bool) -> Outcome {
        let mut outcome = Outcome { granted: 0, judgements: Vec::new() };
        for _ in 0..takes {
            let judgements = self.take_one(policy, i128::from(now_ms), cost, counts);
            outcome.granted += u64::from(judgements.iter().all(Judgement::allowed));
            outcome.judgements.push(judgements);
        }
        outcome
    }

    fn take_one(&mut self, policy: &Policy, now_ms: i128, cost: u64, counts: bool) -> Vec<Judgement> {
        let rules: Vec<Rule> = policy.limits().iter().map(|limit| self.rule(policy, limit.name.as_str())).collect();
        let mut found: Vec<Now> = policy
            .limits()
            .iter()
            .zip(&rules)
            .map(|(limit, rule)| self.now(limit.name.as_str(), rule, now_ms))
            .collect();
        let banned_ms = policy.ban().map_or(0, |ban| self.ban_left(ban, now_ms));
        let fits = found.iter().all(|limit| limit.tokens >= i128::from(cost));
        if banned_ms == 0 && fits {
            for (limit, now) in policy.limits().iter().zip(&mut found) {
                now.tokens -= i128::from(cost);
                if cost > 0 {
                    self.write(limit.name.as_str(), now, now_ms);
                }
            }
            return found.iter().map(|now| now.judge(now_ms, None)).collect();
        }
        let mut judged: Vec<Judgement> = found.iter().map(|now| now.judge(now_ms, Some(i128::from(cost)))).collect();
        let mut ban_ms = banned_ms;
        if let Some(ban) = policy.ban()
            && banned_ms == 0
            && counts
            && cost > 0
        {
            ban_ms = self.count_denial(ban, now_ms);
        }
        if ban_ms > 0 {
            for judgement in judged.iter_mut().filter(|judgement| judgement.reason != Reason::Never) {
                judgement.reason = Reason::Banned;
                judgement.retry_after_ms = judgement.retry_after_ms.map(|wait_ms| wait_ms.max(ban_ms as u64));
            }
        }
        judged
    }

    /// Gives tokens back: how many each limit got.
    pub(crate) fn give(&mut self, policy: &Policy, now_ms: u64, tokens: u64, stamps: &[u64]) -> Vec<u64> {
        let now_ms = i128::from(now_ms);
        let mut given = Vec::new();
        for (index, limit) in policy.limits().iter().enumerate() {
            let name = limit.name.as_str();
            let rule = self.rule(policy, name);
            let mut now = self.now(name, &rule, now_ms);
            let stamp = stamps.get(index).copied().unwrap_or(0);
            let (missing, current) = match &now.view {
                View::Bucket { .. } => (now.capacity - now.tokens, true),
                View::Quota { start_ms, used, .. } => (*used, stamp == 0 || i128::from(stamp) == *start_ms),
            };
            let gift = if current { missing.min(i128::from(tokens)) } else { 0 };
            if gift > 0 {
                now.tokens = now.capacity - missing + gift;
                if gift == missing {
                    self.limits.remove(name);
                } else {
                    self.write(name, &now, now_ms);
                }
            }
            given.push(gift as u64);
        }
        given
    }

    /// Drops what is expired: a clock that goes back later finds it gone.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        let now_ms = i128::from(now_ms);
        self.limits.retain(|_, state| now_ms < state.expires_ms);
        self.ban = self.ban.take().filter(|ban| {
            let (BanState::Counting { expires_ms, .. } | BanState::Banned { expires_ms, .. }) = ban;
            now_ms < *expires_ms
        });
    }

    /// Forgets what was taken from a policy's limits, and the ban.
    pub(crate) fn reset(&mut self, policy: &Policy) {
        for limit in policy.limits() {
            self.limits.remove(limit.name.as_str());
        }
        self.ban = None;
    }

    fn rule(&self, policy: &Policy, name: &str) -> Rule {
        let own = self.overrides.as_ref().filter(|_| policy.overrides()).and_then(|own| own.get(name));
        let limit = policy.limits().iter().find(|limit| limit.name.as_str() == name).unwrap();
        match (own, &limit.rule) {
            (Some(Rule::Bucket(own)), Rule::Bucket(old)) if own.mode() == old.mode() => (*own).into(),
            (Some(Rule::Quota(own)), Rule::Quota(_)) => own.clone().into(),
            _ => limit.rule.clone(),
        }
    }

    /// A limit brought up to now. Nothing is kept: only takes and gifts write.
    fn now(&self, name: &str, rule: &Rule, now_ms: i128) -> Now {
        let count = self.limits.get(name).filter(|state| now_ms < state.expires_ms).map(|state| &state.count);
        match rule {
            Rule::Bucket(bucket) => bucket_now(bucket, count, now_ms),
            Rule::Quota(quota) => quota_now(quota, count, now_ms),
        }
    }

    fn write(&mut self, name: &str, now: &Now, now_ms: i128) {
        let (count, expires_ms) = match &now.view {
            View::Bucket { bucket, since } => {
                let refill = if bucket.mode() == Refill::Greedy { i128::from(bucket.refill()) } else { 1 };
                let count = Count::Tokens { tokens: now.tokens, since: *since, refill };
                // What is missing, from now on; a time ahead of the clock doesn't count.
                let ahead = (since.ceil() - now_ms).max(Ms::from(0));
                let full_ms = now.full_at() - ahead.to_integer();
                (count, now_ms + (full_ms - now_ms).max(1))
            }
            View::Quota { start_ms, end_ms, .. } => {
                let count = Count::Used { used: now.capacity - now.tokens, start_ms: *start_ms };
                (count, now_ms + (end_ms - now_ms.max(*start_ms)).max(1))
            }
        };
        self.limits.insert(name.to_owned(), State { count, expires_ms });
    }

    fn ban_left(&self, ban: &Ban, now_ms: i128) -> i128 {
        match &self.ban {
            Some(BanState::Banned { struck_ms, expires_ms }) if now_ms < *expires_ms => {
                (struck_ms + i128::from(ban.for_ms()) - now_ms).clamp(0, i128::from(ban.for_ms()))
            }
            _ => 0,
        }
    }

    /// One more denial: how long the ban is that it brings, or 0.
    fn count_denial(&mut self, ban: &Ban, now_ms: i128) -> i128 {
        let (within_ms, for_ms) = (i128::from(ban.within_ms()), i128::from(ban.for_ms()));
        let (denials, since_ms) = match &self.ban {
            Some(BanState::Counting { denials, since_ms, expires_ms })
                if now_ms < *expires_ms && (now_ms - since_ms).abs() < within_ms =>
            {
                (*denials, *since_ms)
            }
            _ => (0, now_ms),
        };
        if denials + 1 >= ban.after() {
            self.ban = Some(BanState::Banned { struck_ms: now_ms, expires_ms: now_ms + for_ms });
            return for_ms;
        }
        let expires_ms = now_ms + (within_ms - (now_ms - since_ms).max(0)).max(1);
        self.ban = Some(BanState::Counting { denials: denials + 1, since_ms, expires_ms });
        0
    }
}

fn bucket_now(bucket: &Bucket, count: Option<&Count>, now_ms: i128) -> Now {
    let (capacity, refill, per_ms) =
        (i128::from(bucket.capacity()), i128::from(bucket.refill()), i128::from(bucket.per_ms()));
    let full = |since_ms: i128| Now {
        tokens: capacity,
        capacity,
        view: View::Bucket { bucket: *bucket, since: Ms::from(since_ms) },
    };
    let Some(&Count::Tokens { tokens, since, refill: refill_then }) = count else {
        return full(now_ms);
    };
    // A clock that went back by more than a whole refill is right, and nothing has come in.
    let last = since.ceil();
    let since = if last.to_integer() - now_ms > i128::from(bucket.fill_ms()) { Ms::from(now_ms) } else { since };
    if tokens >= capacity {
        return full(now_ms.max(since.ceil().to_integer()));
    }
    let now = Ms::from(now_ms.max(since.ceil().to_integer()));
    match bucket.mode() {
        Refill::Greedy => {
            // Of the refill that was, less than a ms is carried over into the one that is.
            let part = ((since.ceil() - since) * refill_then).to_integer().min(refill - 1);
            let since = since.ceil() - Ms::new(part, refill);
            let gained = ((now - since) * Ms::new(refill, per_ms)).floor().to_integer();
            if tokens + gained >= capacity {
                return full(now.to_integer());
            }
            let since = since + Ms::new(gained * per_ms, refill);
            Now { tokens: tokens + gained, capacity, view: View::Bucket { bucket: *bucket, since } }
        }
        Refill::Interval => {
            let since = since.ceil();
            let steps = ((now - since) / per_ms).floor().to_integer();
            if tokens + steps * refill >= capacity {
                return full(now.to_integer());
            }
            let since = since + steps * per_ms;
            Now { tokens: tokens + steps * refill, capacity, view: View::Bucket { bucket: *bucket, since } }
        }
    }
}

/// Quotas of the model are minutes of UTC: which instants begin a window is the calendar's own test.
const WINDOW_MS: i128 = 60_000;

fn quota_now(quota: &Quota, count: Option<&Count>, now_ms: i128) -> Now {
    let capacity = i128::from(quota.quota());
    let mut start_ms = now_ms - now_ms % WINDOW_MS;
    let mut used = 0;
    if let Some(&Count::Used { used: then, start_ms: charged_ms }) = count
        && charged_ms >= start_ms
    {
        used = then;
        // The clock went back: the window that was charged goes on, unless it is more than two ahead.
        if charged_ms <= start_ms + 2 * WINDOW_MS {
            start_ms = charged_ms;
        }
    }
    let view = View::Quota { start_ms, end_ms: start_ms + WINDOW_MS, used };
    Now { tokens: (capacity - used).max(0), capacity, view }
}

impl Now {
    /// The first ms at which `wanted` tokens are there.
    fn at(&self, wanted: i128) -> i128 {
        match &self.view {
            View::Bucket { bucket, since } => {
                let missing = wanted - self.tokens;
                let (refill, per_ms) = (i128::from(bucket.refill()), i128::from(bucket.per_ms()));
                match bucket.mode() {
                    Refill::Greedy => (since + Ms::new(missing * per_ms, refill)).ceil().to_integer(),
                    Refill::Interval => since.to_integer() + (missing + refill - 1) / refill * per_ms,
                }
            }
            View::Quota { end_ms, .. } => *end_ms,
        }
    }

    fn full_at(&self) -> i128 {
        self.at(self.capacity)
    }

    /// What the limit says: to a take that it denied for its cost, or after one that passed.
    fn judge(&self, now_ms: i128, denied_cost: Option<i128>) -> Judgement {
        let wait_ms = |wanted: i128| match wanted {
            _ if wanted > self.capacity => None,
            _ if wanted <= self.tokens => Some(0),
            _ => Some((self.at(wanted) - now_ms).max(0) as u64),
        };
        let short = denied_cost.filter(|cost| *cost > self.tokens);
        let retry_after_ms = short.map_or(Some(0), wait_ms);
        Judgement {
            reason: match (short, retry_after_ms) {
                (None, _) => Reason::Ok,
                (Some(_), Some(_)) => Reason::OverLimit,
                (Some(_), None) => Reason::Never,
            },
            remaining: self.tokens as u64,
            retry_after_ms,
            next_ms: wait_ms(self.tokens + 1).unwrap_or(0),
            full_ms: wait_ms(self.capacity).unwrap_or(0),
        }
    }
}
