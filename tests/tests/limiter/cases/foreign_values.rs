//! What somebody else wrote into a key is an error, never a pass and never overwritten.

use std::sync::Arc;

use sluicegate_lua::{Ban, Gift, Give, Policy, Take};

use crate::{
    case::{Case, charge, on_both_stores, unit},
    policies::{HOUR_MS, daily, greedy, interval, limits, one},
};

on_both_stores![
    in_a_bucket_it_is_an_error,
    in_a_quota_it_is_an_error,
    in_a_ban_it_is_an_error,
    in_an_override_it_is_an_error,
    beside_it_nothing_is_charged,
    beside_enforced_checks_a_shadow_check_has_no_tokens,
    a_reset_clears_it,
];

const FOREIGN: [&str; 14] = [
    "garbage",
    "-",
    ":",
    "1:2:3",
    "x1",
    "1x",
    "1.5",
    "1e9",
    "nan",
    "inf",
    "0x10",
    " 1",
    "--11800000000000",
    // A count over 2^53.
    "99999999999999991800000000000",
];

fn values(case: &Case) -> Vec<String> {
    case.store.entries().into_iter().map(|entry| entry.value).collect()
}

fn takes_are_refused(case: &Case, policy: &Arc<Policy>) {
    let before = values(case);
    for (takes, cost) in [(1, 1), (3, 1), (1, 0)] {
        let take = Take { takes, units: vec![unit(&[(policy, &case.keys, cost)], true)] };
        let reply = case.store.run(&take.call(case.store.now_ms()));
        assert!(reply.map_or(true, |reply| take.read(&reply).is_err()), "{takes} × {cost} with {before:?}");
    }
    assert_eq!(values(case), before);
}

fn is_refused(case: &Case, policy: &Arc<Policy>) {
    takes_are_refused(case, policy);
    let before = values(case);
    let give = Give { gifts: vec![Gift { charge: charge(policy, &case.keys, 1), stamps: Vec::new() }] };
    assert!(case.store.run(&give.call(case.store.now_ms())).is_err(), "given with {before:?}");
    assert_eq!(values(case), before);
}

fn check(case: &Case, policy: &Arc<Policy>, key: &str) {
    for value in FOREIGN {
        case.write(key, value, HOUR_MS);
        is_refused(case, policy);
    }
}

fn in_a_bucket_it_is_an_error(case: &Case) {
    for rule in [greedy(5, 1, HOUR_MS), interval(5, 1, HOUR_MS)] {
        check(case, &one(rule), &case.limit_key("burst"));
    }
}

fn in_a_quota_it_is_an_error(case: &Case) {
    check(case, &one(daily(5, case.store.now_ms())), &case.limit_key("burst"));
}

fn in_a_ban_it_is_an_error(case: &Case) {
    let policy = limits(&[("burst", greedy(5, 1, HOUR_MS))]).with_ban(Ban::new(2, HOUR_MS, HOUR_MS).unwrap());
    check(case, &Arc::new(policy), &case.keys.ban());
}

fn in_an_override_it_is_an_error(case: &Case) {
    let policy = Arc::new(limits(&[("burst", greedy(5, 1, HOUR_MS))]).with_overrides());
    let broken = [
        "\nburst g x\n",
        "\nburst g 5\n",
        "\nburst g 5 1\n",
        "\nburst g -5 1 1\n",
        "\nburst g 0 1 1\n",
        "\nburst g 5 0 1\n",
        "\nburst g 5 1 0\n",
        "\nburst g 5 1 1",
        // What no policy may have.
        "\nburst g 9007199254740993 1 1\n",
        "\nburst g 9007199254740992 1 31622400000\n",
        "\nburst g 2 1 31622400000\n",
        "\nburst g 5 9007199254740993000 1\n",
        "\nburst g 99999999999999999999999999 1 1\n",
    ];
    for value in broken {
        case.write(&case.keys.overrides(), value, HOUR_MS);
        takes_are_refused(case, &policy);
    }
    let policy = Arc::new(limits(&[("burst", interval(5, 1, HOUR_MS))]).with_overrides());
    for value in ["\nburst i 2 1 31622400000\n", "\nburst i 9007199254740994 9007199254740992 1\n"] {
        case.write(&case.keys.overrides(), value, HOUR_MS);
        takes_are_refused(case, &policy);
    }
    // In whole periods a year's worth may come back at once.
    case.write(&case.keys.overrides(), "\nburst i 1000000 1000000 31622400000\n", HOUR_MS);
    assert_eq!(case.take(&policy, 1).left(), [999_999]);
}

fn beside_it_nothing_is_charged(case: &Case) {
    let rules = [("a", greedy(5, 1, HOUR_MS)), ("burst", greedy(5, 1, HOUR_MS)), ("c", greedy(5, 1, HOUR_MS))];
    let policy = Arc::new(limits(&rules));
    case.write(&case.limit_key("burst"), "garbage", HOUR_MS);
    is_refused(case, &policy);
    assert_eq!(case.store.entries().len(), 1);
}

/// What is only watched fails nothing.
fn beside_enforced_checks_a_shadow_check_has_no_tokens(case: &Case) {
    let (watched, five) = (case.subject("watched", "s"), one(greedy(5, 1, HOUR_MS)));
    for rule in [greedy(5, 1, HOUR_MS), interval(5, 1, HOUR_MS), daily(5, case.store.now_ms())] {
        let policy = one(rule);
        case.write(&watched.limit(&"burst".parse().unwrap()), "garbage", HOUR_MS);
        let units = vec![unit(&[(&five, &case.keys, 1)], true), unit(&[(&policy, &watched, 1)], false)];
        let heard = case.ask(&Take { takes: 1, units });
        assert_eq!((heard[0][0].allowed(), heard[1][0].allowed()), (true, false));
        assert_eq!(heard[1][0].left(), [0]);
    }
    assert_eq!(case.left(&five), [2]);
}

fn a_reset_clears_it(case: &Case) {
    let policy = one(greedy(5, 1, HOUR_MS));
    case.write(&case.limit_key("burst"), "garbage", HOUR_MS);
    assert_eq!(case.reset(&policy), 1);
    assert_eq!(case.take(&policy, 1).left(), [4]);
}
