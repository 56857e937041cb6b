//! Units of one call: judged and charged each on its own, as shadow checks are beside enforced ones.

use sluicegate_lua::Take;
use sluicegate_wire::Reason;

use crate::{
    case::{Case, on_both_stores, unit},
    policies::{HOUR_MS, greedy, one},
};

on_both_stores![
    a_denied_unit_leaves_the_others_charged,
    the_order_of_units_changes_nothing,
    a_unit_after_another_finds_what_that_left,
    joined_takes_are_counted_unit_by_unit,
    units_of_one_subject_take_one_after_the_other,
];

fn a_denied_unit_leaves_the_others_charged(case: &Case) {
    let shadow = case.subject("shadow", "s");
    let (five, two) = (one(greedy(5, 1, HOUR_MS)), one(greedy(2, 1, HOUR_MS)));
    let take = |enforced_cost, shadow_cost| Take {
        takes: 1,
        units: vec![unit(&[(&five, &case.keys, enforced_cost)], true), unit(&[(&two, &shadow, shadow_cost)], false)],
    };
    let heard = case.ask(&take(1, 3));
    assert_eq!((heard[0][0].left(), heard[1][0].reasons()), (vec![4], vec![Reason::Never]));
    let heard = case.ask(&take(5, 1));
    assert_eq!((heard[0][0].reasons(), heard[1][0].left()), (vec![Reason::OverLimit], vec![1]));
    assert_eq!(case.ask(&take(0, 0)).concat().iter().flat_map(|heard| heard.left()).collect::<Vec<_>>(), [4, 1]);
}

fn the_order_of_units_changes_nothing(case: &Case) {
    let shadow = case.subject("shadow", "s");
    let two = one(greedy(2, 1, HOUR_MS));
    let (enforced, watched) = (unit(&[(&two, &case.keys, 1)], true), unit(&[(&two, &shadow, 2)], false));
    let heard = case.ask(&Take { takes: 2, units: vec![watched, enforced] });
    assert_eq!([&heard[0], &heard[1]].map(|heard| heard[1].allowed()), [false, true]);
    assert_eq!([&heard[0], &heard[1]].map(|heard| heard[1].left()), [[0], [0]]);
}

fn a_unit_after_another_finds_what_that_left(case: &Case) {
    let three = one(greedy(3, 1, HOUR_MS));
    let units = vec![unit(&[(&three, &case.keys, 2)], true), unit(&[(&three, &case.keys, 2)], false)];
    let heard = case.ask(&Take { takes: 1, units });
    assert_eq!((heard[0][0].left(), heard[1][0].left()), (vec![1], vec![1]));
    assert_eq!(heard[1][0].reasons(), [Reason::OverLimit]);
}

fn joined_takes_are_counted_unit_by_unit(case: &Case) {
    let shadow = case.subject("shadow", "s");
    let (five, two) = (one(greedy(5, 1, HOUR_MS)), one(greedy(2, 1, HOUR_MS)));
    let units = vec![unit(&[(&two, &shadow, 1)], false), unit(&[(&five, &case.keys, 1)], true)];
    let heard = case.ask(&Take { takes: 4, units });
    let allowed = |index: usize| heard[index].iter().filter(|heard| heard.allowed()).count();
    assert_eq!((allowed(0), allowed(1)), (2, 4));
}

fn units_of_one_subject_take_one_after_the_other(case: &Case) {
    let five = one(greedy(5, 1, HOUR_MS));
    let units = vec![unit(&[(&five, &case.keys, 2)], true), unit(&[(&five, &case.keys, 1)], false)];
    let heard = case.ask(&Take { takes: 1, units: units.clone() }).concat();
    assert_eq!(heard.iter().flat_map(|heard| heard.left()).collect::<Vec<_>>(), [3, 2]);
    let heard = case.ask(&Take { takes: 1, units }).concat();
    assert_eq!(heard.iter().map(|heard| heard.allowed()).collect::<Vec<_>>(), [true, false]);
    assert_eq!(case.left(&five), [0]);
}
