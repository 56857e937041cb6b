//! What several proxies admit together: never more than `capacity + rate · (t + for)` in any `t`, whatever answers are
//! late or lost, whoever crashes, and whenever the demand comes.
#![cfg(not(target_arch = "wasm32"))]

mod common;

use std::collections::BTreeMap;

use common::{Shared, TestRequest, reply};
use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use sluicegate_filter_core::{
    Callout, Config, Judgement, LeaseTicket, Outcome, Step, Surroundings, TICK_MS, Ticket, Verdict, Worker,
};

const FOR_MS: u64 = 500;
/// No check takes longer, or its own wait would shift what is admitted further.
const MAX_DELAY_MS: u64 = 240;

/// The bucket of the service, in parts of a token: exact.
struct Bucket {
    capacity: u64,
    refill: u64,
    per_ms: u64,
    units: u64,
    last_ms: u64,
}

impl Bucket {
    fn tokens(&mut self, now_ms: u64) -> u64 {
        self.units = (self.units + (now_ms - self.last_ms) * self.refill).min(self.capacity * self.per_ms);
        self.last_ms = now_ms;
        self.units / self.per_ms
    }

    fn take(&mut self, most: u64, now_ms: u64) -> u64 {
        let taken = self.tokens(now_ms).min(most);
        self.units -= taken * self.per_ms;
        taken
    }

    fn give(&mut self, tokens: u64, now_ms: u64) {
        self.tokens(now_ms);
        self.units = (self.units + tokens * self.per_ms).min(self.capacity * self.per_ms);
    }
}

/// What a step does.
#[derive(Clone, Debug)]
enum Act {
    Wait {
        ms: u64,
    },
    /// So many requests at a worker of a proxy.
    Requests {
        proxy: usize,
        worker: usize,
        requests: u8,
    },
    /// Its memory and what it waits for are gone.
    Crash {
        proxy: usize,
    },
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (1_u64..120).prop_map(|ms| Act::Wait { ms }),
        1 => (300_u64..2_000).prop_map(|ms| Act::Wait { ms }),
        12 => (0_usize..2, 0_usize..2, 1_u8..30)
            .prop_map(|(proxy, worker, requests)| Act::Requests { proxy, worker, requests }),
        1 => (0_usize..2).prop_map(|proxy| Act::Crash { proxy }),
    ]
}

/// On the way to the service, or back.
enum Event {
    Arrive { from: (usize, usize, u64), ask: Ask, lost: bool },
    Answer { to: (usize, usize, u64), ask: Ask, status: u16, body: String },
}

enum Ask {
    Check(Box<(Callout, Ticket)>),
    Lease { max: u64, ticket: LeaseTicket, until_ms: u64 },
    Refund { tokens: u64, until_ms: u64 },
}

struct Proxy {
    shared: Shared,
    workers: Vec<Worker>,
    crashes: u64,
}

struct World {
    config: Config,
    bucket: Bucket,
    proxies: Vec<Proxy>,
    /// By time, and in order.
    events: BTreeMap<(u64, u64), Event>,
    delays: Vec<u64>,
    next: u64,
    now_ms: u64,
    admitted_ms: Vec<u64>,
    callouts: u64,
    lossy: bool,
    /// More delay for the answers of leases, and for refunds on their way.
    slow_ms: (u64, u64),
    taken: u64,
    given: u64,
}

impl World {
    fn new(capacity: u64, refill: u64, per_ms: u64, tokens: u64, delays: Vec<u64>) -> Self {
        let lease = json!({ "tokens": tokens, "for": format!("{FOR_MS}ms") });
        let limit = json!({ "policy": "p", "key": ["client_ip"], "lease": lease });
        let rule = json!({ "name": "r", "limits": [limit], "on_failure": "closed" });
        let config = json!({ "service": { "cluster": "c" }, "rules": [rule], "breaker": { "failures": 0 } });
        let config = Config::parse(config.to_string().as_bytes()).unwrap();
        let now_ms = 1_000_000;
        let proxies = (0..2).map(|_| Proxy::new(&config, 0)).collect();
        let bucket = Bucket { capacity, refill, per_ms, units: capacity * per_ms, last_ms: now_ms };
        let (events, admitted_ms) = (BTreeMap::new(), Vec::new());
        Self {
            config,
            bucket,
            proxies,
            events,
            delays,
            next: 0,
            now_ms,
            admitted_ms,
            callouts: 0,
            lossy: true,
            slow_ms: (0, 0),
            taken: 0,
            given: 0,
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Wait { ms } => self.wait(ms),
            Act::Requests { proxy, worker, requests } => (0..requests).for_each(|_| self.request(proxy, worker)),
            Act::Crash { proxy } => self.proxies[proxy] = Proxy::new(&self.config, self.proxies[proxy].crashes + 1),
        }
    }

    fn request(&mut self, proxy: usize, worker: usize) {
        let Proxy { shared, workers, crashes } = &mut self.proxies[proxy];
        let around = Surroundings { now_ms: self.now_ms, shared };
        match workers[worker].begin(&self.config, &TestRequest::new("GET", "/x"), around) {
            Step::Ask(callout, ticket) => {
                let from = (proxy, worker, *crashes);
                self.send(from, Ask::Check(Box::new((callout, ticket))));
            }
            Step::Done(judgement) => self.judged(&judgement),
            Step::Pass(_) => panic!("there is a limit"),
        }
    }

    fn judged(&mut self, judgement: &Judgement) {
        if matches!(judgement.verdict, Verdict::Pass { .. }) {
            self.admitted_ms.push(self.now_ms);
        }
    }

    /// The next delay; each sixth answer is lost.
    fn send(&mut self, from: (usize, usize, u64), ask: Ask) {
        self.callouts += 1;
        let slow_ms = if matches!(ask, Ask::Refund { .. }) { self.slow_ms.1 } else { 0 };
        let delay_ms = self.delay() + slow_ms;
        let lost = self.lossy && self.callouts.is_multiple_of(6);
        self.at(delay_ms, Event::Arrive { from, ask, lost });
    }

    fn delay(&mut self) -> u64 {
        self.next += 1;
        self.delays[usize::try_from(self.next).unwrap() % self.delays.len()]
    }

    fn at(&mut self, delay_ms: u64, event: Event) {
        self.next += 1;
        self.events.insert((self.now_ms + delay_ms, self.next), event);
    }

    fn wait(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now_ms += 1;
            while let Some(first) = self.events.first_entry().filter(|first| first.key().0 <= self.now_ms) {
                let event = first.remove();
                self.happen(event);
            }
            if self.now_ms.is_multiple_of(TICK_MS) {
                self.tick();
            }
        }
    }

    fn tick(&mut self) {
        for proxy in 0..2 {
            for worker in 0..2 {
                let Proxy { shared, workers, crashes } = &mut self.proxies[proxy];
                let around = Surroundings { now_ms: self.now_ms, shared };
                let from = (proxy, worker, *crashes);
                for sent in workers[worker].tick(&self.config, around) {
                    let body: Value = serde_json::from_slice(&sent.body).unwrap();
                    let until_ms = self.now_ms + u64::from(sent.timeout.ms());
                    let ask = match sent.ticket {
                        Some(ticket) => Ask::Lease { max: body["max"].as_u64().unwrap(), ticket, until_ms },
                        None => Ask::Refund { tokens: body["checks"][0]["cost"].as_u64().unwrap(), until_ms },
                    };
                    self.send(from, ask);
                }
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { from, ask, lost } => self.serve(from, ask, lost),
            Event::Answer { to: (proxy, worker, crashes), ask, status, body } => {
                let Proxy { shared, workers, crashes: crashed } = &mut self.proxies[proxy];
                if crashes != *crashed {
                    return;
                }
                let around = Surroundings { now_ms: self.now_ms, shared };
                let outcome = if status == 0 { Outcome::Lost } else { reply(status, body.as_bytes()) };
                match ask {
                    Ask::Check(asked) => {
                        let judgement = workers[worker].finish(&asked.0.asked, asked.1, outcome, around);
                        self.judged(&judgement);
                    }
                    Ask::Lease { ticket, .. } => drop(workers[worker].leased(&ticket, outcome, around)),
                    Ask::Refund { .. } => {}
                }
            }
        }
    }

    /// The service: nothing is done for who has given up.
    fn serve(&mut self, from: (usize, usize, u64), ask: Ask, lost: bool) {
        let now_ms = self.now_ms;
        let result = |allowed: bool| {
            json!({
                "check": 0, "policy": "p", "limit": "l", "allowed": allowed, "capacity": 9, "window_ms": 9,
                "reason": if allowed { "ok" } else { "over_limit" }, "remaining": 0, "next_ms": 9, "full_ms": 9,
                "retry_after_ms": if allowed { 0 } else { 9 },
            })
        };
        let (status, body) = match &ask {
            Ask::Check(_) => {
                let allowed = self.bucket.take(1, now_ms) == 1;
                self.taken += u64::from(allowed);
                let body = json!({ "allowed": allowed, "results": [result(allowed)], "deny_cache_ms": 9 });
                (if allowed { 200 } else { 429 }, body)
            }
            Ask::Lease { max, until_ms, .. } if now_ms < *until_ms => {
                let granted = self.bucket.take(*max, now_ms);
                self.taken += granted;
                (200, json!({ "granted": granted, "result": result(granted > 0) }))
            }
            Ask::Refund { tokens, until_ms } if now_ms < *until_ms => {
                self.bucket.give(*tokens, now_ms);
                self.given += tokens;
                (200, json!({}))
            }
            Ask::Lease { .. } | Ask::Refund { .. } => (503, json!({})),
        };
        let status = if lost { 0 } else { status };
        let slow_ms = if matches!(ask, Ask::Lease { .. }) { self.slow_ms.0 } else { 0 };
        let delay_ms = self.delay() + slow_ms;
        self.at(delay_ms, Event::Answer { to: from, ask, status, body: body.to_string() });
    }

    /// In any time: what the bucket had, and what came in during that time and `for` before it. In parts of a token, and
    /// for each end from the worst of all beginnings.
    fn check_bound(&self) -> Result<(), TestCaseError> {
        let [capacity, refill, per_ms] = [self.bucket.capacity, self.bucket.refill, self.bucket.per_ms].map(i128::from);
        let most = capacity * per_ms + i128::from(FOR_MS) * refill;
        let mut least = i128::MAX;
        for (before, time_ms) in (0..).zip(&self.admitted_ms) {
            let of_time = i128::from(*time_ms) * refill;
            least = least.min(before * per_ms - of_time);
            let worst = (before + 1) * per_ms - of_time - least;
            prop_assert!(worst <= most, "{worst} of {most} at {time_ms}");
        }
        Ok(())
    }
}

impl Proxy {
    fn new(config: &Config, crashes: u64) -> Self {
        Self { shared: Shared::default(), workers: (0..2).map(|_| Worker::new(config)).collect(), crashes }
    }
}

fn delays() -> impl Strategy<Value = Vec<u64>> {
    vec(prop_oneof![8 => 0_u64..8, 1 => 0..MAX_DELAY_MS], 7..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_time_admits_more_than_its_bound(
        (capacity, refill, per_ms) in (1_u64..200, 1_u64..50, 1_u64..2_000),
        tokens in 1_u64..100,
        delays in delays(),
        acts in vec(act(), 1..120),
    ) {
        let mut world = World::new(capacity, refill, per_ms, tokens, delays);
        for act in &acts {
            world.act(act);
        }
        world.wait(2 * FOR_MS);
        world.check_bound()?;
        let admitted = u64::try_from(world.admitted_ms.len()).unwrap();
        prop_assert!(admitted + world.given <= world.taken, "{admitted} and {} of {}", world.given, world.taken);
    }
}

/// A lease of 40 tokens, or few less, from a full bucket, of which a request every 100 ms keeps as many as it can for as
/// long as it can. When what was taken has come in again, all that there is, is asked for at once.
fn check_held_for(held_ms: u64, slow_ms: (u64, u64)) {
    let mut world = World::new(200, 1, 20, 40, vec![0]);
    world.lossy = false;
    // The first lease is small, as what was used until it was asked for. The second is for all that was used.
    (0..40).for_each(|_| world.request(0, 0));
    world.wait(2 * TICK_MS);
    world.slow_ms = slow_ms;
    (0..40).for_each(|_| world.request(0, 0));
    world.wait(1);
    assert_eq!(world.admitted_ms.len(), 80);
    // As if it had been filled by hand.
    world.bucket.give(200, world.now_ms);
    (world.taken, world.given) = (0, 0);
    world.admitted_ms.clear();
    for now_ms in 1..=held_ms {
        world.wait(1);
        if now_ms % 100 == 0 {
            world.request(0, 0);
        }
    }
    assert!(world.taken >= 30, "{} taken", world.taken);
    for _ in 0..20 {
        for (proxy, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            (0..100).for_each(|_| world.request(proxy, worker));
        }
        world.wait(2);
    }
    world.check_bound().unwrap();
}

#[test]
fn what_is_kept_from_one_time_does_not_come_on_top_of_the_next() {
    check_held_for(790, (0, 0));
    check_held_for(690, (300, 0));
    check_held_for(700, (0, 300));
}

/// 500 requests a second at each proxy.
#[test]
fn a_steady_subject_gets_all_that_there_is_with_few_callouts() {
    let mut world = World::new(2_000, 1, 86_400_000, 100, vec![2]);
    world.lossy = false;
    let mut callouts = None;
    for _ in 0..2_000 {
        for (proxy, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            world.request(proxy, worker);
        }
        world.wait(4);
        if callouts.is_none() && world.admitted_ms.len() >= 1_500 {
            callouts = Some(world.callouts);
        }
    }
    assert_eq!(world.admitted_ms.len(), 2_000);
    let callouts = callouts.unwrap();
    assert!(callouts < 100, "{callouts} callouts for 1500 requests");
}
