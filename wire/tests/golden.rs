//! What each version says on the wire is kept in `golden/`, one folder a version: during a rolling upgrade filters and
//! services of neighbouring versions talk to each other.

use std::{fmt::Debug, fs, path::Path};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use sluicegate_wire::{CheckAnswer, CheckRequest, LeaseAnswer, LeaseRequest, Problem, RefundAnswer, RefundRequest};

/// The version that writes exactly what its folder holds; older ones are only read.
const CURRENT: &str = "0.1";

/// Reads a golden body in each version, with and without a field of a version to come; the current one is written back
/// to the same JSON.
fn check<T: Debug + PartialEq + Serialize + DeserializeOwned>(file: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let mut versions = 0;
    for version in fs::read_dir(&golden).unwrap() {
        let version = version.unwrap();
        let text = fs::read_to_string(version.path().join(file)).unwrap();
        let body: Value = serde_json::from_str(&text).unwrap();
        let read: T = serde_json::from_value(body.clone()).unwrap();
        let with_more: T = serde_json::from_value(with_unknown_fields(body.clone())).unwrap();
        assert_eq!(with_more, read, "{version:?}: an unknown field matters in {file}");
        if version.file_name() == CURRENT {
            assert_eq!(serde_json::to_value(&read).unwrap(), body, "{file} is written in another way");
        }
        versions += 1;
    }
    assert!(versions > 0);
}

/// Adds a field to every object but a key's parts, which are told apart by their fields.
fn with_unknown_fields(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: serde_json::Map<_, _> = fields
                .into_iter()
                .map(|(name, value)| if name == "key" { (name, value) } else { (name, with_unknown_fields(value)) })
                .collect();
            fields.insert("from-a-later-version".to_owned(), json!([1]));
            Value::Object(fields)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(with_unknown_fields).collect()),
        other => other,
    }
}

#[test]
fn check_requests() {
    check::<CheckRequest>("check_request.json");
}

#[test]
fn check_answers() {
    check::<CheckAnswer>("check_answer_allowed.json");
    check::<CheckAnswer>("check_answer_denied.json");
}

#[test]
fn refunds() {
    check::<RefundRequest>("refund_request.json");
    check::<RefundAnswer>("refund_answer.json");
}

#[test]
fn leases() {
    check::<LeaseRequest>("lease_request.json");
    check::<LeaseAnswer>("lease_answer_granted.json");
    check::<LeaseAnswer>("lease_answer_none.json");
}

#[test]
fn problems() {
    check::<Problem>("problem.json");
}
