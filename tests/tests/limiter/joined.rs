//! Joined takes are the same as those takes one after another: random calls of several units and checks, made as one
//! call on one store and as single ones on another, leave the same keys and tell each take the same.
//!
//! `SLUICEGATE_JOINED` is how many sequences of calls to try; 500 unless set.

use std::{env, sync::Arc};

use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::Config};
use sluicegate_lua::{Answer, Ban, Judgement, KeyPrefix, Keys, Policy, Take, Taken};
use sluicegate_wire::Subject;

use crate::{
    case::unit,
    policies::{greedy, interval, limits},
    rig::Rig,
};

/// A call: for each unit whether its denials count, and its checks' costs; how many takes; the pause after it.
type Step = (Vec<(bool, Vec<u64>)>, u64, u64);

fn policy() -> impl Strategy<Value = Arc<Policy>> {
    let rule = (select(vec![1, 2, 5, 9]), select(vec![1, 7]), select(vec![3, 100, 100_000]), any::<bool>()).prop_map(
        |(capacity, refill, per_ms, steps)| {
            if steps { interval(capacity, refill, per_ms) } else { greedy(capacity, refill, per_ms) }
        },
    );
    let ban = (1_u64..6, select(vec![50_u64, 5_000]), select(vec![20_u64, 1_000]));
    (vec(rule, 1..3), option::weighted(0.6, ban)).prop_map(|(rules, ban)| {
        let policy = limits(&["a", "b"].into_iter().zip(rules).collect::<Vec<_>>());
        Arc::new(match ban {
            Some((after, within_ms, for_ms)) => policy.with_ban(Ban::new(after, within_ms, for_ms).unwrap()),
            None => policy,
        })
    })
}

fn step() -> impl Strategy<Value = Step> {
    let checks = vec(select(vec![0, 1, 1, 1, 2, 3, 10]), 1..4);
    let units = vec((any::<bool>(), checks), 1..3);
    (units, 1_u64..9, select(vec![0, 0, 1, 19, 20, 60, 3_000]))
}

fn run(rig: &Rig, take: &Take) -> Taken {
    let reply = rig.run(&take.call(rig.now_ms()));
    let Answer::Done(taken) = take.read(&reply).unwrap() else { panic!("there is no calendar") };
    taken
}

fn entries(rig: &Rig) -> Vec<(String, String, u64)> {
    let mut entries = rig.memory.entries();
    entries.sort();
    entries
}

/// Each check of each unit has a subject of its own: units of one call see what the ones before left.
fn keys(unit: usize, check: usize) -> Keys {
    KeyPrefix::default().keys(&"p".parse().unwrap(), &Subject::text(format!("{unit}-{check}")).encode(None))
}

proptest! {
    #![proptest_config(Config {
        cases: env::var("SLUICEGATE_JOINED").map_or(500, |count| count.parse().expect("a number of sequences")),
        max_shrink_iters: 100_000,
        failure_persistence: Some(Box::new(proptest::test_runner::FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    })]

    #[test]
    fn joined_takes_are_single_takes(policies in vec(policy(), 3), steps in vec(step(), 1..12)) {
        let (joined, single) = (Rig::new(), Rig::new());
        for (units, takes, pause_ms) in &steps {
            let units: Vec<_> = units
                .iter()
                .enumerate()
                .map(|(index, (counts, costs))| {
                    let keys: Vec<_> = (0..costs.len()).map(|check| keys(index, check)).collect();
                    let charges = costs.iter().zip(&policies).zip(&keys);
                    unit(&charges.map(|((cost, policy), keys)| (policy, keys, *cost)).collect::<Vec<_>>(), *counts)
                })
                .collect();
            let all = Take { takes: *takes, units: units.clone() };
            let one = Take { takes: 1, units };
            let taken = run(&joined, &all);
            for nth in 1..=*takes {
                let taken_singly = run(&single, &one);
                for unit in 0..all.units.len() {
                    let told: Vec<Vec<Judgement>> = taken.judge(&all, unit, nth);
                    prop_assert_eq!(told, taken_singly.judge(&one, unit, 1), "take {} of unit {}", nth, unit);
                }
            }
            prop_assert_eq!(entries(&joined), entries(&single));
            joined.pause(*pause_ms);
            single.pause(*pause_ms);
        }
    }
}
