use sluicegate_wire::Pepper;
use tonic::Code as Grpc;

use super::{
    message::{Code, Descriptor, DescriptorStatus, Duration, Entry, RateLimit, RateLimitOverride, Unit},
    *,
};
use crate::{api::tests::app_of, config::Config, serve::Phase};

const CONFIG: &str = "
store: { url: memory:// }
policies:
  ten: { limits: [{ name: minute, capacity: 10, refill: 10, per: 1m }] }
  odd: { limits: [{ name: burst, capacity: 3, refill: 3, per: 10m }] }
  month: { limits: [{ name: month, quota: 5, every: month }] }
rate_limit_service:
  domains:
    edge:
      - { match: [{ generic_key: internal }], unlimited: true }
      - { match: [{ generic_key: shadow }, user], policy: ten, shadow: true }
      - { match: [{ generic_key: month }], policy: month }
      - { match: [{ generic_key: odd }], policy: odd }
      - { match: [{ generic_key: secret }, key], policy: odd, key: [{ entry: key, secret: true }] }
      - { match: [remote_address], policy: ten }
      - { match: [remote_address, user], policy: odd }
";

fn app(config: &str) -> App {
    let mut app = app_of(config, Phase::Serving);
    app.limiter.pepper = Some(Pepper::new(b"pepper").unwrap());
    app.store_timeout = std::time::Duration::from_secs(10);
    app
}

fn descriptor(entries: &[(&str, &str)]) -> Descriptor {
    let entry = |(key, value): &(&str, &str)| Entry { key: (*key).into(), value: (*value).into() };
    Descriptor { entries: entries.iter().map(entry).collect(), ..Descriptor::default() }
}

fn question(descriptors: &[Descriptor]) -> RateLimitRequest {
    RateLimitRequest { domain: "edge".into(), descriptors: descriptors.to_vec(), hits_addend: 0 }
}

async fn ask(app: &App, question: &RateLimitRequest) -> Result<RateLimitResponse, Status> {
    decide(app, question, &HeaderMap::new(), Instant::now()).await
}

async fn answer(app: &App, descriptors: &[Descriptor]) -> RateLimitResponse {
    ask(app, &question(descriptors)).await.unwrap()
}

fn codes(answer: &RateLimitResponse) -> Vec<Code> {
    let statuses = answer.statuses.iter().map(|status| status.code());
    std::iter::once(answer.overall_code()).chain(statuses).collect()
}

fn header<'a>(answer: &'a RateLimitResponse, key: &str) -> Option<&'a str> {
    let mut named = answer.response_headers_to_add.iter().filter(|header| header.key == key);
    let value = named.next().map(|header| &*header.value);
    assert!(named.next().is_none(), "{key} is there twice");
    value
}

/// What is left in the bucket of a descriptor.
async fn left(app: &App, entries: &[(&str, &str)]) -> u32 {
    answer(app, &[Descriptor { hits_addend: Some(0), ..descriptor(entries) }]).await.statuses[0].limit_remaining
}

const ADDRESS: &[(&str, &str)] = &[("remote_address", "203.0.113.7")];

#[tokio::test]
async fn a_descriptor_is_answered_with_its_limit() {
    let answer = answer(&app(CONFIG), &[descriptor(ADDRESS)]).await;
    let status = DescriptorStatus {
        code: Code::Ok.into(),
        current_limit: Some(RateLimit { requests_per_unit: 10, unit: Unit::Minute.into(), name: "ten.minute".into() }),
        limit_remaining: 9,
        duration_until_reset: Some(Duration { seconds: 6 }),
    };
    assert_eq!((answer.overall_code(), &*answer.statuses), (Code::Ok, &[status][..]));
    assert_eq!(header(&answer, "ratelimit"), Some("\"minute\";r=9;t=6"));
    assert_eq!(header(&answer, "ratelimit-policy"), Some("\"minute\";q=10;w=60"));
    assert_eq!(answer.response_headers_to_add.len(), 2);
}

#[tokio::test]
async fn only_limits_of_a_unit_are_shown_as_such() {
    let answer =
        answer(&app(CONFIG), &[descriptor(&[("generic_key", "odd")]), descriptor(&[("generic_key", "month")])]).await;
    assert_eq!((&answer.statuses[0].current_limit, answer.statuses[0].limit_remaining), (&None, 2));
    let limit = answer.statuses[1].current_limit.as_ref().unwrap();
    assert_eq!((limit.requests_per_unit, limit.unit(), &*limit.name), (5, Unit::Month, "month.month"));
}

#[tokio::test]
async fn all_descriptors_are_taken_for_or_none() {
    let app = app(CONFIG);
    let (many, few) = (descriptor(ADDRESS), descriptor(&[("remote_address", "203.0.113.7"), ("user", "u")]));
    for _ in 0..3 {
        assert_eq!(codes(&answer(&app, &[many.clone(), few.clone()]).await), [Code::Ok; 3]);
    }
    let denied = answer(&app, &[many.clone(), few]).await;
    assert_eq!(codes(&denied), [Code::OverLimit, Code::Ok, Code::OverLimit]);
    assert_eq!(header(&denied, "x-sluicegate-reason"), Some("over_limit"));
    assert_eq!(header(&denied, "ratelimit"), Some("\"odd.burst\";r=0;t=200"));
    assert!(header(&denied, "retry-after").is_some());
    assert_eq!(left(&app, ADDRESS).await, 7, "the denied call took nothing");
}

#[tokio::test]
async fn hits_are_the_cost() {
    let app = app(CONFIG);
    let mut call =
        question(&[descriptor(ADDRESS), Descriptor { hits_addend: Some(2), ..descriptor(&[("generic_key", "odd")]) }]);
    call.hits_addend = 4;
    assert_eq!(codes(&ask(&app, &call).await.unwrap()), [Code::Ok; 3]);
    assert_eq!((left(&app, ADDRESS).await, left(&app, &[("generic_key", "odd")]).await), (6, 1));
    // One at a time is what is meant by nothing said.
    answer(&app, &[descriptor(ADDRESS)]).await;
    assert_eq!(left(&app, ADDRESS).await, 5);
}

#[tokio::test]
async fn more_than_a_limit_ever_holds_is_over_limit() {
    for hits in [11, u64::MAX] {
        let denied = answer(&app(CONFIG), &[Descriptor { hits_addend: Some(hits), ..descriptor(ADDRESS) }]).await;
        assert_eq!(codes(&denied), [Code::OverLimit; 2]);
        assert_eq!((header(&denied, "x-sluicegate-reason"), header(&denied, "retry-after")), (Some("never"), None));
    }
}

#[tokio::test]
async fn what_nothing_is_for_is_allowed_and_counted() {
    let app = app(CONFIG);
    let unmatched = [
        descriptor(&[]),
        descriptor(&[("user", "u")]),
        descriptor(&[("user", "u"), ("remote_address", "203.0.113.7")]),
        descriptor(&[("generic_key", "odd"), ("user", "u")]),
    ];
    let plain = DescriptorStatus { code: Code::Ok.into(), ..DescriptorStatus::default() };
    let answered = answer(&app, &unmatched).await;
    assert_eq!(answered.statuses, vec![plain; 4]);
    assert!(answered.response_headers_to_add.is_empty());
    let other = RateLimitRequest { domain: "other".into(), ..question(&[descriptor(ADDRESS)]) };
    assert_eq!(codes(&ask(&app, &other).await.unwrap()), [Code::Ok; 2]);
    let limited = RateLimitOverride {};
    answer(&app, &[Descriptor { limit: Some(limited), ..descriptor(ADDRESS) }]).await;

    let mut registry = prometheus_client::registry::Registry::default();
    app.rate_limit_stats.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in
        ["unmatched_total{by=\"domain\"} 1", "unmatched_total{by=\"descriptor\"} 4", "overrides_ignored_total 1"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[tokio::test]
async fn unlimited_and_shadow_descriptors_are_never_denied() {
    let app = app(CONFIG);
    let shadow = descriptor(&[("generic_key", "shadow"), ("user", "u")]);
    let both = [descriptor(&[("generic_key", "internal")]), shadow.clone()];
    for left in (0..10).rev() {
        let answer = answer(&app, &both).await;
        assert_eq!(codes(&answer), [Code::Ok; 3]);
        assert_eq!((answer.statuses[0].limit_remaining, answer.statuses[1].limit_remaining), (u32::MAX, left));
        assert!(answer.response_headers_to_add.is_empty());
    }
    let denied = answer(&app, &both).await;
    assert_eq!((codes(&denied), header(&denied, "x-sluicegate-shadow")), (vec![Code::Ok; 3], Some("over_limit")));
    assert_eq!(denied.response_headers_to_add.len(), 1);
}

#[tokio::test]
async fn negative_hits_are_given_back() {
    let app = app(CONFIG);
    answer(&app, &[Descriptor { hits_addend: Some(7), ..descriptor(ADDRESS) }]).await;
    let back = |hits| Descriptor { hits_addend: Some(hits), is_negative_hits: true, ..descriptor(ADDRESS) };
    assert_eq!(codes(&answer(&app, &[back(3)]).await), [Code::Ok; 2]);
    assert_eq!(left(&app, ADDRESS).await, 6);
    // Beside a take that is denied nothing is given.
    let four = Descriptor { hits_addend: Some(4), ..descriptor(&[("generic_key", "odd")]) };
    assert_eq!(codes(&answer(&app, &[back(3), four]).await), [Code::OverLimit, Code::Ok, Code::OverLimit]);
    assert_eq!(left(&app, ADDRESS).await, 6);
    assert_eq!(codes(&answer(&app, &[back(1000), descriptor(&[("generic_key", "odd")])]).await), [Code::Ok; 3]);
    assert_eq!(left(&app, ADDRESS).await, 10, "no more than it holds");
}

#[tokio::test]
async fn bytes_that_are_not_text_are_a_value_like_others() {
    let app = app(CONFIG);
    let bytes = |value: &[u8]| Descriptor {
        entries: vec![Entry { key: b"remote_address".to_vec(), value: value.to_vec() }],
        ..Descriptor::default()
    };
    answer(&app, &[bytes(b"\xff"), bytes(b"\xff")]).await;
    assert_eq!(answer(&app, &[bytes(b"\xff")]).await.statuses[0].limit_remaining, 7);
    assert_eq!(answer(&app, &[bytes(b"\xfe")]).await.statuses[0].limit_remaining, 9);
}

#[test]
fn a_secret_is_digested_as_elsewhere() {
    let config = Config::parse("app.yaml", CONFIG, &|_| None).unwrap();
    let descriptor = descriptor(&[("generic_key", "secret"), ("key", "hunter2")]);
    let call = question(&[descriptor]);
    let asked = Asked::read(&call, config.policies.rate_limit_service()).unwrap();
    let pepper = Pepper::new(b"pepper").unwrap();
    let digest = sluicegate_wire::Part::secret(b"hunter2", Some(&pepper));
    let expected = sluicegate_wire::Subject::new(vec![digest]).unwrap().encode(Some(&pepper));
    assert_eq!(asked.checks[0].key.encode(Some(&pepper)), expected);
    assert!(!format!("{asked:?}").contains("hunter2"), "{asked:?}");
}

async fn check_refused(config: &str, call: &RateLimitRequest, code: Grpc, message: &str) {
    let status = ask(&app(config), call).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (code, message));
}

#[tokio::test]
async fn what_can_not_be_asked_is_refused() {
    let good = question(&[descriptor(ADDRESS)]);
    let nothing = RateLimitRequest { domain: String::new(), ..good.clone() };
    check_refused(CONFIG, &nothing, Grpc::InvalidArgument, "domain: is empty; name the domain").await;
    check_refused(CONFIG, &question(&[]), Grpc::InvalidArgument, "descriptors: there are none; send at least one")
        .await;
    let message = "descriptors: there are 65, the most is 64; send several requests";
    check_refused(CONFIG, &question(&vec![descriptor(ADDRESS); 65]), Grpc::InvalidArgument, message).await;
    assert_eq!(answer(&app(CONFIG), &vec![descriptor(ADDRESS); 64]).await.statuses.len(), 64);

    let strict = CONFIG.replace("  domains:", "  unknown_domain: error\n  domains:");
    let other = RateLimitRequest { domain: "other".into(), ..good.clone() };
    let message = "domain: there is no \"other\" in rate_limit_service.domains";
    check_refused(&strict, &other, Grpc::NotFound, message).await;

    let month = Descriptor { is_negative_hits: true, ..descriptor(&[("generic_key", "month")]) };
    let message = "descriptors[0].is_negative_hits: the policy month has a quota, which needs the answer's charge; \
                   refund through /v1/refund";
    check_refused(CONFIG, &question(&[month]), Grpc::FailedPrecondition, message).await;
    let back = question(&[Descriptor { is_negative_hits: true, ..descriptor(ADDRESS) }]);
    let message = "refunds are off, since other machines can reach this listener without a token; set a token, or refunds: \
                   true to allow them";
    check_refused(&format!("refunds: false\n{CONFIG}"), &back, Grpc::PermissionDenied, message).await;

    let (none, _) = CONFIG.split_once("rate_limit_service").unwrap();
    let message = "there is no rate_limit_service in the service's configuration; add it";
    check_refused(none, &good, Grpc::Unimplemented, message).await;

    let down = CONFIG.replace("memory://", "unix:///nowhere/redis.sock");
    let message = "the store can't be reached: No such file or directory (os error 2)";
    check_refused(&down, &good, Grpc::Unavailable, message).await;
    let mut headers = HeaderMap::new();
    headers.insert("grpc-timeout", "0m".parse().unwrap());
    let status = decide(&app(CONFIG), &good, &headers, Instant::now()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Grpc::Unavailable, "the store did not answer in time"));
}
