//! What Prometheus is told about reloads: always what [`Live::state`] says.

use std::{fmt, time::UNIX_EPOCH};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge, info::Info},
};

use super::{Attempt, Live};

/// Reloads, as Prometheus reads them.
#[derive(Debug)]
pub(super) struct Reloads(pub(super) Live);

impl Collector for Reloads {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let state = self.0.state();
        let help = "Attempts to read the configuration anew, by what became of them";
        let mut reloads = encoder.encode_descriptor("config_reloads", help, None, MetricType::Counter)?;
        for (result, count) in [("ok", state.succeeded), ("failed", state.failed)] {
            ConstCounter::new(count).encode(reloads.encode_family(&[("result", result)])?)?;
        }
        let good = matches!(state.last_attempt, Attempt::Ok { .. });
        let help = "Whether the last attempt to read the configuration succeeded";
        let gauge = encoder.encode_descriptor("config_last_reload_successful", help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::from(good)).encode(gauge)?;
        // A clock before 1970 is one that isn't set yet.
        let success_s = state.last_success_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let help = "When the configuration was read with success last";
        let name = "config_last_reload_success_timestamp_seconds";
        ConstGauge::new(success_s).encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        let help = "The version of the policies in use";
        let info = encoder.encode_descriptor("policies", help, None, MetricType::Info)?;
        Info::new([("version", state.version.to_string())]).encode(info)
    }
}
