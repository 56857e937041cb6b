//! Random policies, takes, gifts, pauses and clock steps through the scripts, each reply compared with the model's.
//!
//! `SLUICEGATE_SEQUENCES` is how many sequences to try; 10,000 unless set.

use std::{collections::BTreeMap, env, sync::Arc};

use proptest::{collection::vec, option, prelude::*, sample::select, test_runner::Config};
use sluicegate_lua::{Ban, Bucket, Every, Limit, Override, Policy, Quota, Refill, Rule};
use sluicegate_wire::Name;

use crate::{model::Model, rig::Rig};

#[derive(Clone, Debug)]
enum Step {
    Take { takes: u64, cost: u64, counts: bool },
    Give { tokens: u64, stamped: bool },
    Pause { ms: u64 },
    ClockBack { ms: u64 },
    Switch { policy: usize },
    Override { rules: Vec<Rule> },
    RemoveOverride,
    Reset,
}

fn bucket() -> impl Strategy<Value = Rule> {
    let capacity = select(vec![1, 2, 3, 5, 10, 50, 1_000]);
    let refill = select(vec![1, 2, 3, 7, 10, 1_000, 5_000]);
    let per_ms = select(vec![1, 3, 7, 100, 1_000, 3_000, 60_000, 86_400_500]);
    let mode = select(vec![Refill::Greedy, Refill::Greedy, Refill::Interval]);
    (capacity, refill, per_ms, mode).prop_filter_map("refused", |(capacity, refill, per_ms, mode)| {
        Bucket::new(capacity, refill, per_ms, mode).ok().map(Rule::from)
    })
}

fn rule() -> impl Strategy<Value = Rule> {
    let quota = select(vec![1, 3, 10, 100]).prop_map(|quota| Quota::new(quota, Every::Minute, "UTC").unwrap().into());
    prop_oneof![4 => bucket(), 1 => quota]
}

fn ban() -> impl Strategy<Value = Ban> {
    (1_u64..5, select(vec![50_u64, 5_000, 60_000]), select(vec![20_u64, 1_000, 100_000]))
        .prop_map(|(after, within_ms, for_ms)| Ban::new(after, within_ms, for_ms).unwrap())
}

fn policy() -> impl Strategy<Value = Arc<Policy>> {
    (vec(rule(), 1..4), 0_usize..3, option::weighted(0.3, ban()), any::<bool>()).prop_map(
        |(rules, first, ban, overrides)| {
            let names = ["a", "b.c", "d-", "a", "b.c"];
            let limits = rules.into_iter().zip(&names[first..]);
            let limits = limits.map(|(rule, name)| Limit { name: name.parse().unwrap(), rule }).collect();
            let mut policy = Policy::new("p".parse().unwrap(), limits).unwrap();
            if let Some(ban) = ban {
                policy = policy.with_ban(ban);
            }
            Arc::new(if overrides { policy.with_overrides() } else { policy })
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let cost = prop_oneof![4 => Just(1), 3 => 0_u64..6, 1 => select(vec![10, 49, 50, 51, 1_000, (1 << 53) - 1])];
    let pause = prop_oneof![
        select(vec![1, 2, 9, 428, 429, 999, 1_000, 5_000, 59_999, 60_000, 3_600_000]),
        0_u64..2_000,
        0_u64..200_000_000,
    ];
    let back = select(vec![1, 3, 200, 1_000, 60_000, 130_000, 7_200_000, 90_000_000]);
    prop_oneof![
        12 => (1_u64..7, cost, prop::bool::weighted(0.8))
            .prop_map(|(takes, cost, counts)| Step::Take { takes, cost, counts }),
        2 => (1_u64..8, any::<bool>()).prop_map(|(tokens, stamped)| Step::Give { tokens, stamped }),
        5 => pause.prop_map(|ms| Step::Pause { ms }),
        2 => back.prop_map(|ms| Step::ClockBack { ms }),
        2 => (0_usize..3).prop_map(|policy| Step::Switch { policy }),
        1 => vec(rule(), 3).prop_map(|rules| Step::Override { rules }),
        1 => Just(Step::RemoveOverride),
        1 => Just(Step::Reset),
    ]
}

proptest! {
    #![proptest_config(Config {
        cases: env::var("SLUICEGATE_SEQUENCES").map_or(10_000, |count| count.parse().expect("a number of sequences")),
        max_shrink_iters: 100_000,
        failure_persistence: Some(Box::new(proptest::test_runner::FileFailurePersistence::WithSource("regressions"))),
        ..Config::default()
    })]

    #[test]
    fn every_reply_is_the_models(policies in vec(policy(), 3), steps in vec(step(), 1..30)) {
        let mut sequence = Sequence::new(policies);
        for (index, step) in steps.iter().enumerate() {
            sequence.apply(index, step);
        }
    }
}

struct Sequence {
    rig: Rig,
    model: Model,
    policies: Vec<Arc<Policy>>,
    policy: Arc<Policy>,
    stamps: Vec<u64>,
}

impl Sequence {
    fn new(policies: Vec<Arc<Policy>>) -> Self {
        let policy = Arc::clone(&policies[0]);
        Self { rig: Rig::new(), model: Model::default(), policies, policy, stamps: Vec::new() }
    }

    fn apply(&mut self, index: usize, step: &Step) {
        match step {
            Step::Take { takes, cost, counts } => self.take(index, *takes, *cost, *counts),
            Step::Give { tokens, stamped } => {
                let stamps = if *stamped { self.stamps.clone() } else { Vec::new() };
                let expected = self.model.give(&self.policy, self.rig.now_ms(), *tokens, &stamps);
                assert_eq!(self.rig.give(&self.policy, *tokens, stamps), expected, "step {index}: {step:?}");
            }
            Step::Pause { ms } => self.rig.pause(*ms),
            Step::ClockBack { ms } => self.rig.step_back(*ms),
            Step::Switch { policy } => {
                self.policy = Arc::clone(&self.policies[*policy]);
                self.stamps.clear();
            }
            Step::Override { rules } => self.set_override(rules),
            Step::RemoveOverride => {
                self.rig.run(&Override::removal(&self.rig.keys));
                self.model.overrides = None;
            }
            Step::Reset => {
                // The limits of the other policies are theirs: only this policy's are forgotten.
                self.rig.reset(&self.policy);
                self.model.reset(&self.policy);
            }
        }
        self.model.expire(self.rig.now_ms());
        self.rig.assert_tidy();
    }

    fn take(&mut self, index: usize, takes: u64, cost: u64, counts: bool) {
        let before = if cost == 0 { Some(self.rig.memory.entries()) } else { None };
        let expected = self.model.take(&self.policy, self.rig.now_ms(), takes, cost, counts);
        let (take, taken) = self.rig.take(&self.policy, takes, cost, counts);
        let told: Vec<_> = (1..=takes).map(|nth| taken.judge(&take, 0, nth).remove(0)).collect();
        assert_eq!(told, expected.judgements, "step {index}: {takes} × {cost}, found {taken:?}");
        assert_eq!(taken.units[0].granted, expected.granted, "step {index}");
        if let (Some(mut before), false) = (before, taken.units[0].checks[0].overridden) {
            let mut after = self.rig.memory.entries();
            before.sort();
            after.sort();
            assert_eq!(after, before, "a look writes nothing");
        }
        self.stamps = taken.units[0].checks[0].levels.iter().map(sluicegate_lua::Level::stamp).collect();
    }

    /// Gives each limit of the policy that can have them the numbers of a rule of its kind.
    fn set_override(&mut self, rules: &[Rule]) {
        let own: Vec<(Name, Rule)> = self
            .policy
            .limits()
            .iter()
            .zip(rules)
            .filter_map(|(limit, rule)| match (&limit.rule, rule) {
                (Rule::Bucket(old), Rule::Bucket(new)) if old.mode() == new.mode() => {
                    Some((limit.name.clone(), rule.clone()))
                }
                (Rule::Quota(_), Rule::Quota(_)) => Some((limit.name.clone(), rule.clone())),
                _ => None,
            })
            .collect();
        if let Ok(set) = Override::new(&self.policy, &own, None) {
            self.rig.run(&set.call(&self.rig.keys));
            self.model.overrides =
                Some(own.into_iter().map(|(name, rule)| (name.to_string(), rule)).collect::<BTreeMap<_, _>>());
        }
    }
}
