//! What the script refuses itself, since anyone may call it.

use super::{KEY, START_MS, call, on_both_stores, take};
use crate::case::Case;

on_both_stores![
    what_is_no_number_is_refused,
    one_key_and_four_arguments,
    numbers_in_any_notation_pass,
    a_foreign_value_is_an_error_and_stays,
    costs_of_nothing_write_nothing,
];

fn what_is_no_number_is_refused(case: &Case) {
    const GOOD: [&str; 4] = ["10", "0.01", "1800000000000", "1"];
    let bad: [&[&str]; 4] = [
        &["0", "0.5", "-1", "-0", "9007199254740994", "1e300"],
        &["-1", "-0.001", "-1e-9"],
        &["-1", "10000000000000", "1e13", "1e300"],
        &["-1", "-100", "1.5", "0.1", "9007199254740994", "1e300"],
    ];
    // Between the bars, the first of them nothing at all.
    let never = "| |nan|-nan|NaN|inf|-inf|Infinity|1e999|-1e999|0x10|0X10|0x1p4|x|1 | 1|\t1|1\n|1,5|1_000|1e|e1|1.2.3\
        |--1|+-1|true|null|None|undefined|\u{661}|1\0|10; DROP";
    let never: Vec<_> = never.split('|').collect();
    let full = [1, 9, 0];
    assert_eq!(take(case, "10", "0.01", START_MS, 1), full);
    let before = case.store.entries();
    for (index, bad) in bad.iter().enumerate() {
        for word in bad.iter().chain(&never) {
            let mut args = GOOD;
            args[index] = word;
            let reply = call(case, &[KEY], &args);
            let error = reply.expect_err(word);
            assert!(error.contains("token_bucket: "), "{error}");
        }
    }
    assert_eq!(case.store.entries()[0].value, before[0].value);
    assert!(case.store.entries()[0].ttl_ms <= before[0].ttl_ms);
}

fn one_key_and_four_arguments(case: &Case) {
    const GOOD: [&str; 5] = ["10", "2", "0", "1", "1"];
    for (keys, count) in
        [(&[][..], 4), (&[KEY, "rl:{other}"], 4), (&[KEY], 0), (&[KEY], 1), (&[KEY], 2), (&[KEY], 3), (&[KEY], 5)]
    {
        let error = call(case, keys, &GOOD[..count]).expect_err("the wrong number");
        assert!(error.contains("one key and four arguments"), "{error}");
    }
    assert_eq!(case.store.entries(), []);
}

/// As languages print floats.
fn numbers_in_any_notation_pass(case: &Case) {
    for (args, left) in [
        (["1e1", "0.01", "1800000000000", "1"], 9),
        (["10.0", "0.010", "1800000000000.0", "1.0"], 8),
        (["+10", "+1e-2", "1.8e12", "1e0"], 7),
        (["10.9", ".01", "1800000000000.7", "1"], 6),
        (["10", "1e-05", "1800000000000", "1"], 5),
        (["10", "1E-02", "1800000000000", "01"], 4),
    ] {
        assert_eq!(call(case, &[KEY], &args).unwrap(), [1, left, 0], "{args:?}");
    }
}

fn a_foreign_value_is_an_error_and_stays(case: &Case) {
    for value in ["garbage", "-1", "1.5", "nan", "1:2:3", "-11800000000000"] {
        case.write(KEY, value, 60_000);
        for cost in ["0", "1"] {
            let error = call(case, &[KEY], &["10", "2", "0", cost]).expect_err(value);
            assert!(error.contains("the key holds something else"), "{error}");
        }
        assert_eq!(case.store.entries()[0].value, value);
    }
}

fn costs_of_nothing_write_nothing(case: &Case) {
    assert_eq!(take(case, "10", "2", START_MS, 0), [1, 10, 0]);
    assert_eq!(take(case, "10", "2", START_MS, 11), [0, 10, -1]);
    assert_eq!(case.store.entries(), []);
    take(case, "10", "2", START_MS, 10);
    let before = case.store.entries();
    assert_eq!(take(case, "10", "2", START_MS + 1_000, 0), [1, 2, 0]);
    assert_eq!(take(case, "10", "2", START_MS + 1_000, 3), [0, 2, 1]);
    assert_eq!(case.store.entries()[0].value, before[0].value);
}
