//! Everything at once.

use anyhow::Result;
use serde_json::Value;

use crate::{Client, Envoy, Overlay, Redis, Service, Upstream};

/// Redis, the service, an upstream and Envoy in front, ready.
#[derive(Debug)]
pub struct Stack {
    // Dropped in this order: who asks goes before who answers.
    /// Envoy with the filter.
    pub envoy: Envoy,
    /// The application.
    pub upstream: Upstream,
    /// The service.
    pub service: Service,
    /// The store.
    pub redis: Redis,
}

impl Stack {
    /// All parts, the service with this configuration and the filter with this one.
    ///
    /// # Errors
    /// When a part doesn't start.
    pub async fn start(service_config: &str, plugin: &Value) -> Result<Self> {
        let redis = Redis::start().await?;
        let (service, upstream) = (Service::start(service_config, &redis.url()).await?, Upstream::start().await?);
        let overlay = Overlay::new(service.port(), upstream.port()).plugin(plugin);
        let envoy = Envoy::start(&overlay).await?;
        Ok(Self { envoy, upstream, service, redis })
    }

    /// A client of Envoy.
    ///
    /// # Errors
    /// When the client can't be built.
    pub fn client(&self) -> Result<Client> {
        Client::new(self.envoy.port())
    }
}
