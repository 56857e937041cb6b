//! `envoy/envoy.yaml` or `envoy/ratelimit-filter.yaml`, with the addresses and rules of one test laid over it.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{Tool, repository};

/// Paths from the root of the file: of the filter chain, and of the HTTP connection manager in it.
const FILTER_CHAIN: &str = "/static_resources/listeners/0/filter_chains/0";
const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";

/// The file without our filter.
const RATE_LIMIT_FILTER: &str = "envoy/ratelimit-filter.yaml";

/// What replaces values of `envoy/envoy.yaml`; the head of that file lists them too.
#[derive(Clone, Debug)]
pub struct Overlay {
    service_port: u16,
    upstream_port: u16,
    service_cluster: Option<Value>,
    plugin: Option<Value>,
    stats_tags: Option<Value>,
    routes: Option<Value>,
    filters_before: Vec<Value>,
    merges: Vec<(Part, Value)>,
    file: &'static str,
    workers: u32,
}

/// What a test may change at will.
#[derive(Clone, Debug)]
enum Part {
    Manager,
    Filter,
    FilterChain,
    Cluster(&'static str),
}

impl Overlay {
    /// The file with the service and the upstream on these ports, and its own rules.
    #[must_use]
    pub const fn new(service_port: u16, upstream_port: u16) -> Self {
        Self {
            service_port,
            upstream_port,
            service_cluster: None,
            plugin: None,
            stats_tags: None,
            routes: None,
            filters_before: Vec::new(),
            merges: Vec::new(),
            file: "envoy/envoy.yaml",
            workers: 2,
        }
    }

    /// The file with Envoy's own rate limit filter in place of ours.
    #[must_use]
    pub fn rate_limit_filter(service_port: u16, upstream_port: u16) -> Self {
        Self { file: RATE_LIMIT_FILTER, ..Self::new(service_port, upstream_port) }
    }

    /// The rules of a test: the plugin configuration as a whole, in the form that the file has.
    #[must_use]
    pub fn plugin(mut self, configuration: &Value) -> Self {
        self.plugin = Some(json!({ "@type": "type.googleapis.com/google.protobuf.Struct", "value": configuration }));
        self
    }

    /// The same as text, which is how Istio and Envoy Gateway pass it on.
    #[must_use]
    pub fn plugin_text(mut self, configuration: &str) -> Self {
        self.plugin =
            Some(json!({ "@type": "type.googleapis.com/google.protobuf.StringValue", "value": configuration }));
        self
    }

    /// Another cluster in place of `sluicegate`. Its endpoint is the service of the test.
    #[must_use]
    pub fn service_cluster(mut self, cluster: Value) -> Self {
        self.service_cluster = Some(cluster);
        self
    }

    /// HTTP/1.1 to the service, for answers that HTTP/2 has no way to break.
    #[must_use]
    pub fn http1_to_service(self) -> Self {
        self.cluster("sluicegate", json!({ "typed_extension_protocol_options": null }))
    }

    /// HTTP/2 to the upstream, as gRPC has it.
    #[must_use]
    pub fn http2_to_upstream(self) -> Self {
        let options = json!({
            "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicit_http_config": { "http2_protocol_options": {} },
        });
        let options = json!({ "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options });
        self.cluster("upstream", json!({ "typed_extension_protocol_options": options }))
    }

    /// Other patterns that find labels in the names of metrics.
    #[must_use]
    pub fn stats_tags(mut self, tags: Value) -> Self {
        self.stats_tags = Some(tags);
        self
    }

    /// Other routes.
    #[must_use]
    pub fn routes(mut self, routes: Value) -> Self {
        self.routes = Some(routes);
        self
    }

    /// An HTTP filter in front of Sluicegate's, behind those of earlier calls.
    #[must_use]
    pub fn filter_before(mut self, filter: Value) -> Self {
        self.filters_before.push(filter);
        self
    }

    /// Other fields of the HTTP connection manager, as a merge patch (RFC 7396).
    #[must_use]
    pub fn manager(self, patch: Value) -> Self {
        self.merge(Part::Manager, patch)
    }

    /// Other fields of the configuration of the file's own filter, likewise.
    #[must_use]
    pub fn filter(self, patch: Value) -> Self {
        self.merge(Part::Filter, patch)
    }

    /// Other fields of the filter chain, likewise.
    #[must_use]
    pub fn filter_chain(self, patch: Value) -> Self {
        self.merge(Part::FilterChain, patch)
    }

    /// Other fields of a cluster, likewise.
    #[must_use]
    pub fn cluster(self, name: &'static str, patch: Value) -> Self {
        self.merge(Part::Cluster(name), patch)
    }

    /// Another number of workers than two.
    #[must_use]
    pub fn workers(self, workers: u32) -> Self {
        Self { workers, ..self }
    }

    fn merge(mut self, part: Part, patch: Value) -> Self {
        self.merges.push((part, patch));
        self
    }

    /// `--concurrency`.
    pub(super) const fn concurrency(&self) -> u32 {
        self.workers
    }

    /// The configuration for Envoy.
    pub(super) fn apply(&self, ingress_port: u16, admin_port: u16) -> Result<Value> {
        let path = repository(self.file);
        let text = fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        let mut config: Value = serde_saphyr::from_str(&text).with_context(|| format!("{} is not YAML", self.file))?;

        set(&mut config, "/admin/address/socket_address/port_value", json!(admin_port))?;
        set(&mut config, "/static_resources/listeners/0/address/socket_address/port_value", json!(ingress_port))?;
        let wasm = format!("{MANAGER}/http_filters/0/typed_config/config");
        if self.file != RATE_LIMIT_FILTER {
            let wasm_path = Tool::FilterWasm.path()?;
            set(&mut config, &format!("{wasm}/vm_config/code/local/filename"), json!(wasm_path))?;
        }
        if let Some(plugin) = &self.plugin {
            set(&mut config, &format!("{wasm}/configuration"), plugin.clone())?;
        }

        if let Some(tags) = &self.stats_tags {
            set(&mut config, "/stats_config/stats_tags", tags.clone())?;
        }

        if let Some(routes) = &self.routes {
            set(&mut config, &format!("{MANAGER}/route_config/virtual_hosts/0/routes"), routes.clone())?;
        }

        if let Some(other) = &self.service_cluster {
            let service = cluster(&mut config, "sluicegate")?;
            *service = other.clone();
            set(service, ENDPOINT_ADDRESS, json!("127.0.0.1"))?;
        }
        set(cluster(&mut config, "sluicegate")?, ENDPOINT_PORT, json!(self.service_port))?;
        set(cluster(&mut config, "upstream")?, ENDPOINT_PORT, json!(self.upstream_port))?;
        for (part, patch) in &self.merges {
            let target = match part {
                Part::Manager => at(&mut config, MANAGER)?,
                Part::Filter => at(&mut config, &format!("{MANAGER}/http_filters/0/typed_config"))?,
                Part::FilterChain => at(&mut config, FILTER_CHAIN)?,
                Part::Cluster(name) => cluster(&mut config, name)?,
            };
            merge(target, patch);
        }
        let filters = at(&mut config, &format!("{MANAGER}/http_filters"))?.as_array_mut();
        filters.context("http_filters is not a list")?.splice(0..0, self.filters_before.iter().cloned());
        Ok(config)
    }
}

/// The address and the port of a cluster's one endpoint.
const ENDPOINT_ADDRESS: &str = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/address";
const ENDPOINT_PORT: &str = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";

fn cluster<'a>(config: &'a mut Value, name: &str) -> Result<&'a mut Value> {
    let clusters = at(config, "/static_resources/clusters")?.as_array_mut().context("clusters is not a list")?;
    let named = clusters.iter_mut().find(|cluster| cluster["name"] == name);
    named.with_context(|| format!("there is no cluster {name}"))
}

/// Replaces a value that must be there: an overlay that misses its target would leave a test running on the file's own
/// ports or rules.
fn set(config: &mut Value, pointer: &str, value: Value) -> Result<()> {
    *at(config, pointer)? = value;
    Ok(())
}

fn at<'a>(config: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    config.pointer_mut(pointer).with_context(|| format!("there is nothing at {pointer}"))
}

/// RFC 7396: null removes, objects are merged, anything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        if value.is_null() {
            target.as_object_mut().map(|target| target.remove(name));
        } else {
            merge(&mut target[name], value);
        }
    }
}
