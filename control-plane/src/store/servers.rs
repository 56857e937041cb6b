//! The servers of the store as operators see them.

use std::fmt;

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric as _},
    metrics::{MetricType, gauge::ConstGauge},
};

use super::{Store, StoreError, admission::Admission, calls::Calls};

/// One Redis server.
#[derive(Clone, Debug)]
pub struct Server {
    /// `host:port`, or `unix:` and a path.
    pub address: String,
    /// Whether calls use it, or why not.
    pub ready: Result<(), StoreError>,
    /// Its connections by state.
    pub connections: Connections,
}

/// Counts of connections by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Calls use it.
    pub up: u64,
    /// It is being made; calls wait for it.
    pub joining: u64,
    /// The breaker has struck: several calls in a row had no answer, and it is used again once a probe has one.
    pub silent: u64,
    /// It could not be made, or the server refuses takes.
    pub down: u64,
}

impl Connections {
    fn by_state(self) -> [(&'static str, u64); 4] {
        [("up", self.up), ("joining", self.joining), ("silent", self.silent), ("down", self.down)]
    }
}

/// What is read at each scrape rather than counted.
#[derive(Debug)]
pub(super) struct Gauges {
    calls: Calls,
    admission: Admission,
}

impl Gauges {
    pub(super) fn of(store: &Store) -> Self {
        Self { calls: store.calls.store().clone(), admission: store.admission.clone() }
    }
}

impl Collector for Gauges {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for (name, help, value) in [
            ("in_flight", "Calls to the store under way", self.admission.in_flight()),
            ("in_flight_max", "The most calls under way at once (store.max_in_flight)", self.admission.most()),
        ] {
            let gauge = ConstGauge::new(value as u64);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        let servers = self.calls.servers();
        if servers.is_empty() {
            return Ok(());
        }
        let help = "Whether calls use the server (1), or fail at once (0)";
        let mut up = encoder.encode_descriptor("server_up", help, None, MetricType::Gauge)?;
        for server in &servers {
            let gauge = ConstGauge::new(u64::from(server.ready.is_ok()));
            gauge.encode(up.encode_family(&[("server", server.address.as_str())])?)?;
        }
        let help = "Connections to the server by state: up, joining, silent (no answers: its breaker is open) or down";
        let mut connections = encoder.encode_descriptor("connections", help, None, MetricType::Gauge)?;
        for server in &servers {
            for (state, count) in server.connections.by_state() {
                let labels = [("server", server.address.as_str()), ("state", state)];
                ConstGauge::new(count).encode(connections.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
