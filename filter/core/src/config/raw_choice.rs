//! A policy and a cost as written: fixed, or by the request.

use sluicegate_wire::{Cost, Name};

use super::{
    ConfigError,
    forms::Named,
    node::{Node, Read, object},
    raw_key::RawSource,
};

/// A policy's name, or how to choose one.
pub(super) enum RawPolicy<'a> {
    Fixed(Name),
    Chosen(RawChosenPolicy<'a>),
}

/// A policy that the request chooses.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawChosenPolicy<'a> {
    /// Where the value comes from.
    pub(super) from: RawSource<'a>,
    /// The policy for each value.
    #[cfg_attr(feature = "schema", schemars(with = "Named<'a, super::schema::Name>"))]
    pub(super) map: Named<'a, Name>,
    /// The policy for every other value, and without one.
    #[cfg_attr(feature = "schema", schemars(with = "super::schema::Name"))]
    pub(super) default: Name,
}
object!(RawChosenPolicy<'a> { from, map, default });

impl<'a> Read<'a> for RawPolicy<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        match node.value {
            value if value.is_object() => RawChosenPolicy::read(node).map(Self::Chosen),
            value if value.is_string() => Name::read(node).map(Self::Fixed),
            _ => Err(node.expected("a name or an object")),
        }
    }
}

/// A number of tokens, or how to get one.
pub(super) enum RawCost<'a> {
    Fixed(Cost),
    Chosen(RawChosenCost<'a>),
}

/// A cost that the request chooses.
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawChosenCost<'a> {
    /// Where the value comes from.
    pub(super) from: RawSource<'a>,
    /// The cost for each value.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Named<'a, super::schema::Cost>>"))]
    pub(super) map: Option<Named<'a, Cost>>,
    /// Values that are numbers cost themselves, this at most. Without, only the map counts.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::Cost>"))]
    pub(super) max: Option<Cost>,
    /// And this at least. 1 without.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::Cost>"))]
    pub(super) min: Option<Cost>,
    /// The cost of every other value, and without one. 1 without.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::Cost>"))]
    pub(super) default: Option<Cost>,
}
object!(RawChosenCost<'a> { from, map, max, min, default });

impl<'a> Read<'a> for RawCost<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        match node.value {
            value if value.is_object() => RawChosenCost::read(node).map(Self::Chosen),
            value if value.is_number() => Cost::read(node).map(Self::Fixed),
            _ => Err(node.expected("a number or an object")),
        }
    }
}
