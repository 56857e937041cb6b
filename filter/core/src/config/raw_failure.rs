//! `on_failure` as written.

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};

use super::raw::{Object, WordOrObject, WordOrObjectVisitor, present};
use crate::Span;

/// `open`, `closed`, `{closed: {status}}`, or `{local: {capacity, refill, per, slots}}`.
#[derive(Default)]
pub(super) enum RawOnFailure {
    #[default]
    Open,
    Closed(RawClosed),
    Local(RawLocal),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawClosed {
    /// A proxy may write whole numbers as `503.0`.
    #[serde(default, deserialize_with = "present")]
    pub(super) status: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLocal {
    pub(super) capacity: f64,
    pub(super) refill: f64,
    pub(super) per: Span,
    #[serde(default, deserialize_with = "present")]
    pub(super) slots: Option<f64>,
}

impl<'de> WordOrObject<'de> for RawOnFailure {
    const EXPECTING: &'static str = "open, closed, {closed: {status: …}} or {local: {capacity, refill, per}}";

    fn word(word: &str) -> Option<Self> {
        match word {
            "open" => Some(Self::Open),
            "closed" => Some(Self::Closed(RawClosed::default())),
            _ => None,
        }
    }

    fn object<A: MapAccess<'de>>(map: A) -> Result<Self, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Form {
            #[serde(default, deserialize_with = "present")]
            closed: Option<Object<RawClosed>>,
            #[serde(default, deserialize_with = "present")]
            local: Option<Object<RawLocal>>,
        }
        match Form::deserialize(MapAccessDeserializer::new(map))? {
            Form { closed: Some(Object(closed)), local: None } => Ok(Self::Closed(closed)),
            Form { closed: None, local: Some(Object(local)) } => Ok(Self::Local(local)),
            Form { .. } => Err(de::Error::custom("give one of closed and local")),
        }
    }
}

impl<'de> Deserialize<'de> for RawOnFailure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordOrObjectVisitor::new())
    }
}
