//! `docs/migrate-from-envoyproxy-ratelimit.md`: its configurations before and after limit alike, and its rules fit.

use std::{
    fs,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use sluicegate_tests::{Code, Descriptor, RateLimitClient, Redis, Service, Tool};

use crate::doc_samples::block;

const PAGE: &str = "docs/migrate-from-envoyproxy-ratelimit.md";

/// A path through the nested descriptors of envoyproxy/ratelimit that ends in a limit.
#[derive(Clone, Debug)]
struct Limited {
    /// Key and value; a value is none where any will do.
    entries: Vec<(String, Option<String>)>,
    /// None where there is no limit. Otherwise what there is of it in a window, and the window's length in seconds.
    limit: Option<(usize, u64)>,
    shadow: bool,
}

fn limited(descriptors: &Value, above: &[(String, Option<String>)], found: &mut Vec<Limited>) {
    for descriptor in descriptors.as_array().unwrap() {
        let text = |field: &str| descriptor[field].as_str().map(str::to_owned);
        let mut entries = above.to_vec();
        entries.push((text("key").unwrap(), text("value")));
        let limit = &descriptor["rate_limit"];
        if limit.is_object() {
            let seconds = match limit["unit"].as_str() {
                Some("minute") => 60,
                Some("hour") => 3600,
                Some("day") => 86_400,
                None if limit["unlimited"] == true => 0,
                other => panic!("{other:?}"),
            };
            let per_window = limit["requests_per_unit"].as_u64().map(|requests| (requests as usize, seconds));
            found.push(Limited {
                entries: entries.clone(),
                limit: per_window,
                shadow: descriptor["shadow_mode"] == true,
            });
        }
        if descriptor["descriptors"].is_array() {
            limited(&descriptor["descriptors"], &entries, found);
        }
    }
}

impl Limited {
    /// A descriptor of this kind for this subject.
    fn descriptor(&self, subject: &str) -> Descriptor {
        let value = |value: &Option<String>| match value {
            None => subject.to_owned(),
            Some(value) => value.replace('*', subject),
        };
        let entries: Vec<_> = self.entries.iter().map(|(key, given)| (key.as_str(), value(given))).collect();
        let entries: Vec<_> = entries.iter().map(|(key, value)| (*key, value.as_str())).collect();
        Descriptor::new(&entries)
    }

    /// How many of `asked` requests of one subject are within the limit, all of them in one window.
    async fn allowed(&self, client: &RateLimitClient, asked: usize) -> usize {
        let window = || {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
            self.limit.map(|(_, seconds)| now / seconds)
        };
        for attempt in 0.. {
            let (began, subject) = (window(), format!("subject-{attempt}"));
            let mut allowed = 0;
            for _ in 0..asked {
                let answer = client.ask(&[self.descriptor(&subject)]).await.unwrap();
                allowed += usize::from(answer.overall_code() == Code::Ok);
            }
            if window() == began {
                return allowed;
            }
        }
        unreachable!("a window lasts for a minute at least")
    }
}

#[tokio::test]
async fn each_descriptor_has_the_limit_that_it_had() {
    let before: Value = serde_saphyr::from_str(&block(PAGE, "yaml before")).unwrap();
    assert_eq!(before["domain"], "edge");
    let mut all = Vec::new();
    limited(&before["descriptors"], &[], &mut all);
    assert_eq!(all.len(), 5);

    let redis = Redis::start().await.unwrap();
    let mut after: Value = serde_saphyr::from_str(&block(PAGE, "yaml after")).unwrap();
    // A slow machine must not turn an answer into a failure.
    after["store"]["timeout"] = "20s".into();
    let service = Service::start(&after.to_string(), &redis.url()).await.unwrap();
    let client = RateLimitClient::new(service.port()).unwrap();
    for descriptor in all {
        let limit = descriptor.limit.map_or(20, |(requests, _)| requests);
        let asked = limit + 3;
        let expected = if descriptor.limit.is_none() || descriptor.shadow { asked } else { limit };
        assert_eq!(descriptor.allowed(&client, asked).await, expected, "{descriptor:?}");
    }
}

#[test]
fn the_rules_fit_the_policies() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, block: String| {
        let path = directory.path().join(name);
        fs::write(&path, block).unwrap();
        path
    };
    let mut check = Command::new(Tool::Service.path().unwrap());
    check.arg("check-config").arg(file("sluicegate.yaml", block(PAGE, "yaml after")));
    check.arg("--filter").arg(file("rules.yaml", block(PAGE, "yaml rules")));
    let output = check.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && !said.contains("warning"), "{said}");
}
