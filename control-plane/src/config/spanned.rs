//! A value and its place in the file.

use serde::{Deserialize, Deserializer};
use serde_saphyr::Location;

/// A value and its place. That of the YAML library, as a type of ours that has a schema.
#[derive(Clone, Debug)]
pub(super) struct Spanned<T> {
    pub(super) value: T,
    /// Where it is used, also when an anchor defines it elsewhere.
    pub(super) referenced: Location,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Spanned<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let serde_saphyr::Spanned { value, referenced, .. } = serde_saphyr::Spanned::deserialize(deserializer)?;
        Ok(Self { value, referenced })
    }
}
