//! Everything the demo starts.

use std::fs;

use anyhow::{Context as _, Result};
use sluicegate_tests::{Client, Envoy, Overlay, Port, Redis, Service, Stage, Upstream, repository};

/// The parts, with `sluicegate.yaml` and `envoy/envoy.yaml` as they are in the repository.
pub(crate) struct World {
    envoy: Envoy,
    service: Service,
    redis: Redis,
    upstream: Upstream,
}

impl World {
    /// Starts all parts, on the ports that the two files name where they are free.
    pub(crate) async fn start() -> Result<Self> {
        let port = Port::lease_or_other;
        let path = repository("sluicegate.yaml");
        let config = fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        let redis = Redis::start_on(port(6379)?).await?;
        let service = Service::start_on(port(8080)?, port(8081)?, &config, &redis.url()).await?;
        let upstream = Upstream::start_on(port(9000)?).await?;
        let envoy = Envoy::start_on(port(10_000)?, port(9901)?, &Overlay::new(service.port(), upstream.port())).await?;
        Ok(Self { envoy, service, redis, upstream })
    }

    /// Who listens where.
    pub(crate) fn addresses(&self) -> String {
        let lines = [
            ("Envoy, with the filter", self.envoy.port()),
            ("Envoy's admin pages", self.envoy.admin_port()),
            ("the application", self.upstream.port()),
            ("the Sluicegate service", self.service.port()),
            ("its admin listener", self.service.admin_port()),
            ("Redis", self.redis.port()),
        ];
        let lines: Vec<_> = lines.iter().map(|(name, port)| format!("{name:<24}127.0.0.1:{port}")).collect();
        lines.join("\n")
    }

    /// What a reader can try.
    pub(crate) fn curl_lines(&self) -> String {
        let (envoy, service, redis) = (self.envoy.port(), self.service.port(), self.redis.port());
        [
            "  # 10 pass, then one a second".to_owned(),
            format!("  curl -i http://127.0.0.1:{envoy}/api/hello -H 'x-api-key: me'"),
            "  # 3 a minute".to_owned(),
            format!("  curl -i -X POST http://127.0.0.1:{envoy}/login"),
            "  # the service itself".to_owned(),
            format!(
                "  curl -i http://127.0.0.1:{service}/v1/check -d '{{\"checks\":[{{\"policy\":\"login\",\"key\":\"me\"}}]}}'"
            ),
            "  # from now on /api/ passes and /login is rejected".to_owned(),
            format!("  redis-cli -p {redis} shutdown nosave"),
        ]
        .join("\n")
    }

    /// The ends of all logs.
    pub(crate) fn logs(&mut self) -> String {
        let redis = self.redis.process().map(|process| process.log_tail()).unwrap_or_default();
        [self.envoy.process().log_tail(), self.service.process().log_tail(), redis].join("\n")
    }
}

impl Stage for World {
    fn client(&self) -> Result<Client> {
        Client::new(self.envoy.port())
    }

    fn expiring_keys(&mut self) -> Result<usize> {
        Ok(self.redis.assert_all_keys_expire())
    }

    async fn stop_store(&mut self) -> Result<()> {
        self.redis.kill();
        Ok(())
    }

    async fn start_store(&mut self) -> Result<()> {
        self.redis.restart().await
    }
}

impl Drop for World {
    /// Nothing to assert about a Redis that is on its way out: Ctrl-C reaches it as well.
    fn drop(&mut self) {
        self.redis.kill();
    }
}
