//! What the filter does between question and verdict, as written.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::raw::{SecretText, present};
use crate::Span;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBreaker {
    #[serde(default, deserialize_with = "present")]
    pub(super) failures: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    pub(super) open_for: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDenyCache {
    #[serde(default, deserialize_with = "present")]
    pub(super) max_entries: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    pub(super) max_life: Option<Span>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawReject {
    #[serde(default, deserialize_with = "present")]
    pub(super) status: Option<f64>,
    #[serde(default, deserialize_with = "present")]
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, SecretText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCharge {
    pub(super) only_status: Vec<f64>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMetrics {
    #[serde(default, deserialize_with = "present")]
    pub(super) labels: Option<String>,
}
