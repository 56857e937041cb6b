//! The filter's configuration of each manifest in a real proxy, which knows the service by the name that the manifest has,
//! with the policies of the ConfigMap and a Redis that lets in whom the ConfigMap says.

use std::{collections::BTreeSet, time::Duration};

use reqwest::Method;
use serde_json::{Value, json};
use sluicegate_tests::{Answer, Client, Envoy, Overlay, Redis, Service, Upstream, until};

use super::{
    pods::{Files, SECRET},
    proxies::patched_cluster,
    rendered::{Rendered, list, text},
};

/// What the README gives a user of Redis.
const PERMISSIONS: &str = "~sg:* +hello +select +evalsha +eval +script|load +time +get +set +pexpire +pttl +del +info";

/// A plugin configuration as text, which is how both hand it over, with time enough for a busy machine.
fn plugin_text(plugin: &Value) -> String {
    let mut plugin = plugin.clone();
    plugin["service"]["timeout"] = json!("20s");
    for rule in plugin["rules"].as_array_mut().unwrap() {
        rule.as_object_mut().unwrap().remove("timeout");
    }
    plugin.to_string()
}

struct World {
    envoy: Envoy,
    service: Service,
    _upstream: Upstream,
    _files: Files,
    _redis: Redis,
}

async fn start(rendered: &Rendered, overlay: impl FnOnce(Overlay) -> Overlay) -> World {
    let (_, password) = SECRET[1];
    let user = format!("sluicegate on >{password} {PERMISSIONS}");
    let redis = Redis::start_with_users(&[&user]).await.unwrap();
    let files = Files::of(rendered);
    let mut config: Value = serde_saphyr::from_str(&files.moved(rendered.config().0)).unwrap();
    config["store"]["timeout"] = json!("5s");
    let service = Service::start(&config.to_string(), &redis.url()).await.unwrap();
    let upstream = Upstream::start().await.unwrap();
    let plugin = plugin_text(rendered.plugin().unwrap().1);
    let plain = Overlay::new(service.port(), upstream.port()).plugin_text(&plugin);
    let envoy = Envoy::start(&overlay(plain)).await.unwrap();
    World { envoy, service, _upstream: upstream, _files: files, _redis: redis }
}

async fn log_in(world: &World) -> Answer {
    Client::new(world.envoy.port()).unwrap().send(Method::POST, "/login", &[]).await.unwrap()
}

/// The attempts to log in that a policy has room for pass; then it is 429, with the headers of either.
async fn assert_limits(rendered: &Rendered, world: &World) {
    let (_, config) = rendered.config();
    let burst = &config["policies"]["login"]["limits"][0];
    let capacity = burst["capacity"].as_u64().unwrap();
    let mut passed = 0;
    // The bucket is refilled meanwhile, by far fewer than that.
    let denied = loop {
        let answer = log_in(world).await;
        if answer.status != 200 {
            break answer;
        }
        assert_eq!(answer.reason(), None, "{answer:?}");
        assert!(answer.header("ratelimit").is_some() && answer.header("ratelimit-policy").is_some(), "{answer:?}");
        passed += 1;
        assert!(passed <= 2 * capacity, "{}: {passed} of {capacity}", rendered.folder);
    };
    assert!(passed >= capacity, "{}: {passed} of {capacity}", rendered.folder);
    assert_eq!((denied.status, denied.reason()), (429, Some("over_limit")), "{denied:?}");
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(denied.header("ratelimit").unwrap().contains("\"login.burst\";r=0"), "{denied:?}");

    // All asked of the cluster by that name.
    let cluster = text(&rendered.plugin().unwrap().1["service"]["cluster"]);
    let asked = world.envoy.stat(&format!("cluster.{cluster}.upstream_rq_completed")).await.unwrap();
    assert!(asked > passed, "{}: {asked}", rendered.folder);
}

/// The cluster of the file under another name, as Istio would send it.
fn renamed(overlay: Overlay, name: &str) -> Overlay {
    overlay.cluster("sluicegate", json!({ "name": name, "load_assignment": { "cluster_name": name } }))
}

/// The labels of the filter's metrics as a proxy of Istio's finds them with `extraStatTags: [rule, verdict, kind]`.
fn istio_tags(overlay: Overlay) -> Overlay {
    let tag = |name: &str| json!({ "tag_name": name, "regex": format!(r"({name}=\.=(.*?);\.;)") });
    overlay.stats_tags(json!([tag("rule"), tag("verdict"), tag("kind")]))
}

#[tokio::test]
async fn with_the_wasm_plugin_attempts_are_counted() {
    for folder in ["envoy/istio/base", "envoy/istio/overlays/production"] {
        let rendered = Rendered::of(folder);
        let cluster = text(&rendered.plugin().unwrap().1["service"]["cluster"]);
        let world = start(&rendered, |overlay| istio_tags(renamed(overlay, cluster))).await;
        assert_limits(&rendered, &world).await;
        let denied = r#"sluicegate_requests_total{rule="login",verdict="over_limit"}"#;
        assert_eq!(world.envoy.metric(denied).await.unwrap(), 1, "{folder}");
    }
}

/// The guide says what is seen then.
#[tokio::test]
async fn a_proxy_without_istios_cluster_has_failure_verdicts_of_their_own_kind() {
    let rendered = Rendered::of("envoy/istio/base");
    let world = start(&rendered, istio_tags).await;
    let answer = log_in(&world).await;
    assert_eq!((answer.status, answer.reason()), (429, Some("failure_closed")), "{answer:?}");
    let refused = r#"sluicegate_callout_failures_total{kind="dispatch_refused"}"#;
    assert_eq!(world.envoy.metric(refused).await.unwrap(), 1);
}

#[tokio::test]
async fn with_envoy_gateways_policies_attempts_are_counted() {
    let rendered = Rendered::of("envoy/gateway");
    let cluster = patched_cluster(&rendered);
    let mut world = start(&rendered, |overlay| overlay.service_cluster(cluster.clone())).await;
    assert_limits(&rendered, &world).await;
    // The proxy asks whether the service is ready, and hears when it stops.
    until("a good check of health", Duration::from_secs(10), async || {
        (world.envoy.stat("cluster.sluicegate.health_check.success").await.unwrap() > 0).then_some(())
    })
    .await
    .unwrap();
    world.service.kill();
    until("a failed check of health", Duration::from_secs(10), async || {
        (world.envoy.stat("cluster.sluicegate.membership_healthy").await.unwrap() == 0).then_some(())
    })
    .await
    .unwrap();
    // Not before the proxy has forgotten the denial.
    until("the failure verdict", Duration::from_secs(10), async || {
        let answer = log_in(&world).await;
        ((answer.status, answer.reason()) == (429, Some("failure_closed"))).then_some(())
    })
    .await
    .unwrap();
}

/// Every policy that rules name is one that somebody uses.
#[test]
fn rules_and_policies_are_of_one_another() {
    for rendered in Rendered::all().filter(|rendered| rendered.plugin().is_some()) {
        let (_, config) = rendered.config();
        let policies: BTreeSet<_> = config["policies"].as_object().unwrap().keys().map(String::as_str).collect();
        let rules = list(&rendered.plugin().unwrap().1["rules"]);
        let used: BTreeSet<_> =
            rules.iter().flat_map(|rule| list(&rule["limits"])).map(|limit| text(&limit["policy"])).collect();
        assert_eq!(policies, used, "{}", rendered.folder);
    }
}
