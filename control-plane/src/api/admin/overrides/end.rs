//! When an override ends.

use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sluicegate_lua::MAX_FILL_MS;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        KnownFormat, ObjectBuilder, RefOr, Schema, SchemaFormat, Type,
        schema::{AdditionalProperties, OneOfBuilder},
    },
};

use crate::api::admin::{AdminError, whole};

/// When an override ends, at most 366 days from now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum End {
    /// Never while it is used: 366 days after the last check.
    Keep,
    /// After so many ms.
    ForMs(#[serde(deserialize_with = "whole::number")] u64),
    /// At a time in RFC 3339, by this service's clock.
    Until(String),
}

impl End {
    /// How long from now; none for as long as it is used.
    pub(super) fn lasts_ms(&self, now: SystemTime) -> Result<Option<u64>, AdminError> {
        let lasts_ms = match self {
            Self::Keep => return Ok(None),
            Self::ForMs(ms) if !(1..=MAX_FILL_MS).contains(ms) => return Err(AdminError::ForMs),
            Self::ForMs(ms) => *ms,
            Self::Until(time) => {
                let time: Timestamp = time.parse().map_err(|_| AdminError::NotATime)?;
                let now = Timestamp::try_from(now).unwrap_or(Timestamp::MAX);
                u64::try_from(time.as_millisecond() - now.as_millisecond()).unwrap_or(0)
            }
        };
        if (1..=MAX_FILL_MS).contains(&lasts_ms) { Ok(Some(lasts_ms)) } else { Err(AdminError::Until) }
    }
}

impl PartialSchema for End {
    fn schema() -> RefOr<Schema> {
        let keep = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(["keep"]));
        let keep = keep.description(Some("Never while it is used: 366 days after the last check."));
        let for_ms = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(MAX_FILL_MS));
        let date_time = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        let until = ObjectBuilder::new().schema_type(Type::String).format(Some(date_time));
        OneOfBuilder::new()
            .description(Some("When it ends, at most 366 days from now."))
            .item(keep)
            .item(field("for_ms", for_ms.description(Some("After so many ms."))))
            .item(field("until", until.description(Some("At this time, by the service's clock."))))
            .into()
    }
}

impl ToSchema for End {}

fn field(name: &str, value: ObjectBuilder) -> ObjectBuilder {
    let strict = AdditionalProperties::<Schema>::FreeForm(false);
    let object = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(strict));
    object.property(name, value).required(name)
}
