//! Any bytes as a configuration, and any request under one that is accepted: nothing panics, JSON and Struct say the
//! same, and the question is one that the service takes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sluicegate_filter_core::{Config, Outcome, Step, Surroundings, Worker};
use sluicegate_filter_fuzz::{Shared, TextRequest, struct_form};
use sluicegate_wire::CheckRequest;

/// Between the configuration and the request.
const SEPARATOR: &[u8] = b"\n--\n";
/// The most checks and bytes that the service takes.
const MAX_CHECKS: usize = 64;
const MAX_BYTES: usize = 256 * 1024;

fuzz_target!(|data: &[u8]| {
    let at = data.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
    let (configuration, request) = at.map_or((data, &[][..]), |at| (&data[..at], &data[at + SEPARATOR.len()..]));
    both_forms_agree(configuration);
    if let Ok(config) = Config::parse(configuration) {
        decide(&config, &TextRequest::new(request));
    }
});

/// Envoy hands a configuration over as a Struct, Istio as JSON.
fn both_forms_agree(configuration: &[u8]) {
    let Ok(Value::Object(object)) = serde_json::from_slice(configuration) else { return };
    let object = struct_form::with_doubles(object);
    let as_struct = Config::parse(&struct_form::encode(&object)).map(drop);
    let as_json = Config::parse(Value::Object(object).to_string().as_bytes()).map(drop);
    assert_eq!(as_json.is_ok(), as_struct.is_ok(), "{as_json:?} {as_struct:?}");
}

fn decide(config: &Config, request: &TextRequest) {
    let shared = Shared::default();
    let mut worker = Worker::new(config);
    for now_ms in [1_000, 1_001] {
        let around = Surroundings { now_ms, shared: &shared };
        let Step::Ask(callout, ticket) = worker.begin(config, request, around) else { continue };
        let question: CheckRequest = serde_json::from_slice(&callout.body).expect("a question");
        assert!((1..=MAX_CHECKS).contains(&question.checks.len()), "{} checks", question.checks.len());
        assert!(callout.body.len() <= MAX_BYTES, "{} bytes", callout.body.len());
        assert_eq!(question, callout.asked.question);
        worker.finish(&callout.asked, ticket, Outcome::Lost, around);
    }
}
