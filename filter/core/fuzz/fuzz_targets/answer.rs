//! Any answer to a question: judged without a panic, a denial never passes, and what isn't the service's never decides.
//!
//! The first byte says how the callout ended and whether the answer is marked, the next two are the status, the rest is
//! the body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use sluicegate_filter_core::{
    Answer, Config, HeaderLine, Judgement, Outcome, Step, Surroundings, Verdict, VerdictLabel, Worker, pairs,
};
use sluicegate_filter_fuzz::{Shared, TextRequest};

const CONFIGURATION: &str = r#"{ "service": { "cluster": "c" }, "headers": ["rate_limit", "x_rate_limit"], "rules": [
    { "name": "shadow", "limits": [{ "policy": "s", "key": ["method"], "shadow": true }], "continue": true },
    { "name": "local", "limits": [{ "policy": "p", "key": ["client_ip"] }], "continue": true,
      "on_failure": { "local": { "capacity": 1, "refill": 1, "per": "1s", "slots": 32 } } },
    { "name": "charged", "limits": [{ "policy": "p", "key": ["host"], "cost": 2 }], "charge": { "only_status": [401] },
      "reject": { "status": 503, "headers": { "a": "b" } } }
] }"#;

thread_local! {
    static CONFIG: Config = Config::parse(CONFIGURATION.as_bytes()).expect("a configuration");
}

fuzz_target!(|data: &[u8]| CONFIG.with(|config| judge(config, data)));

fn judge(config: &Config, data: &[u8]) {
    let [form, low, high, body @ ..] = data else { return };
    let _ = pairs::decode(body);
    let status = u16::from_le_bytes([*low, *high]);
    let marked = form & 1 != 0;
    let outcome = match form >> 1 {
        0..=125 => Outcome::Answered(Answer { status: Some(status), marked, body }),
        126 => Outcome::Answered(Answer { status: None, marked, body }),
        _ => Outcome::Lost,
    };
    let answer = match outcome {
        Outcome::Answered(Answer { status: Some(200 | 429), marked: true, body }) => serde_json::from_slice(body).ok(),
        _ => None,
    };
    let request = TextRequest::new(if form & 2 == 0 { b":method:GET" } else { b"content-type:application/grpc" });
    let (shared, mut worker) = (Shared::default(), Worker::new(config));
    let around = Surroundings { now_ms: 1_000, shared: &shared };
    let Step::Ask(callout, ticket) = worker.begin(config, &request, around) else { panic!("asks the service") };
    let judgement = worker.finish(&callout.asked, ticket, outcome, around);
    check(&judgement, status, answer.as_ref());
    // A denial may be answered from memory, a pass never.
    let denied = judgement.failure.is_none() && matches!(judgement.verdict, Verdict::Reject(_));
    let later = Surroundings { now_ms: 1_001, ..around };
    if let (Step::Done(again), false) = (worker.begin(config, &request, later), denied) {
        panic!("{judgement:?} and then at once {again:?}");
    }
    if let Verdict::Pass { refund: Some(refund), .. } = judgement.verdict {
        let _ = refund.callout(Some(200), &config.service);
    }
}

fn check(judgement: &Judgement, status: u16, answer: Option<&Value>) {
    match (&judgement.verdict, judgement.failure.is_some()) {
        (Verdict::Pass { response_headers, .. }, false) => {
            assert_eq!((judgement.label, status), (VerdictLabel::Allowed, 200));
            let answer = answer.expect("an answer");
            assert_eq!(answer["allowed"], true);
            let denies = |result: &Value| result["allowed"] == false && result["shadow"] != true;
            assert!(!answer["results"].as_array().expect("results").iter().any(denies), "{answer}");
            no_control_characters(response_headers);
        }
        (Verdict::Reject(rejection), false) => {
            assert_eq!(status, 429);
            assert_eq!(answer.expect("an answer")["allowed"], false);
            no_control_characters(&rejection.headers);
        }
        (Verdict::Pass { response_headers, .. }, true) => no_control_characters(response_headers),
        (Verdict::Reject(rejection), true) => no_control_characters(&rejection.headers),
    }
}

fn no_control_characters(lines: &[HeaderLine]) {
    for (name, value) in lines {
        assert!(!value.as_str().chars().any(char::is_control), "{name}: {}", value.as_str());
    }
}
