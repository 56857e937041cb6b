//! `envoy/envoy.yaml`, with the addresses and rules of one test laid over it.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::{Tool, repository};

/// The path of the HTTP connection manager from the root of the file.
const MANAGER: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";

/// What replaces values of `envoy/envoy.yaml`; the head of that file lists them too.
#[derive(Clone, Debug)]
pub struct Overlay {
    service_port: u16,
    upstream_port: u16,
    plugin: Option<Value>,
    http1_to_service: bool,
    stats_tags: Option<Value>,
    routes: Option<Value>,
}

impl Overlay {
    /// The file with the service and the upstream on these ports, and its own rules.
    #[must_use]
    pub const fn new(service_port: u16, upstream_port: u16) -> Self {
        Self { service_port, upstream_port, plugin: None, http1_to_service: false, stats_tags: None, routes: None }
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

    /// HTTP/1.1 to the service, for answers that HTTP/2 has no way to break.
    #[must_use]
    pub const fn http1_to_service(mut self) -> Self {
        self.http1_to_service = true;
        self
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

    /// The configuration as JSON for Envoy.
    pub(super) fn apply(&self, ingress_port: u16, admin_port: u16) -> Result<String> {
        let path = repository("envoy/envoy.yaml");
        let text = fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        let mut config: Value = serde_saphyr::from_str(&text).context("envoy/envoy.yaml is not YAML")?;

        set(&mut config, "/admin/address/socket_address/port_value", json!(admin_port))?;
        set(&mut config, "/static_resources/listeners/0/address/socket_address/port_value", json!(ingress_port))?;
        let wasm = format!("{MANAGER}/http_filters/0/typed_config/config");
        let wasm_path = Tool::FilterWasm.path()?;
        set(&mut config, &format!("{wasm}/vm_config/code/local/filename"), json!(wasm_path))?;
        if let Some(plugin) = &self.plugin {
            set(&mut config, &format!("{wasm}/configuration"), plugin.clone())?;
        }

        if let Some(tags) = &self.stats_tags {
            set(&mut config, "/stats_config/stats_tags", tags.clone())?;
        }

        if let Some(routes) = &self.routes {
            set(&mut config, &format!("{MANAGER}/route_config/virtual_hosts/0/routes"), routes.clone())?;
        }

        let service = cluster(&mut config, "sluicegate")?;
        set(service, ENDPOINT_PORT, json!(self.service_port))?;
        if self.http1_to_service {
            at(service, "/typed_extension_protocol_options")?.take();
        }
        set(cluster(&mut config, "upstream")?, ENDPOINT_PORT, json!(self.upstream_port))?;
        Ok(config.to_string())
    }
}

/// The port of a cluster's one endpoint.
const ENDPOINT_PORT: &str = "/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/port_value";

fn cluster<'a>(config: &'a mut Value, name: &str) -> Result<&'a mut Value> {
    let clusters = at(config, "/static_resources/clusters")?.as_array_mut().context("clusters is not a list")?;
    let named = clusters.iter_mut().find(|cluster| cluster["name"] == name);
    named.with_context(|| format!("envoy/envoy.yaml has no cluster {name}"))
}

/// Replaces a value that must be there: an overlay that misses its target would leave a test running on the file's own
/// ports or rules.
fn set(config: &mut Value, pointer: &str, value: Value) -> Result<()> {
    *at(config, pointer)? = value;
    Ok(())
}

fn at<'a>(config: &'a mut Value, pointer: &str) -> Result<&'a mut Value> {
    config.pointer_mut(pointer).with_context(|| format!("envoy/envoy.yaml has nothing at {pointer}"))
}
