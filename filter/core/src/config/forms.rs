//! Forms that fields share.

use serde_json::Value;
use sluicegate_wire::{Cost, Name};

use super::{
    ConfigError,
    node::{Node, Read},
};
use crate::{Span, Timeout};

/// A text with a type of its own.
macro_rules! parsed {
    ($($type:ident),*) => {$(
        impl<'a> Read<'a> for $type {
            fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
                let text = node.text().ok_or_else(|| node.expected("a text"))?;
                text.parse().map_err(|error| node.wrong(format!("{error}")))
            }
        }
    )*};
}
parsed!(Name, Span, Timeout);

/// A whole number from `MIN` to `MAX`. A proxy may write it as `5.0`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole<const MIN: u64, const MAX: u64>(pub(super) u64);

impl<'a, const MIN: u64, const MAX: u64> Read<'a> for Whole<MIN, MAX> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        whole(node, MIN, MAX).map(Self)
    }
}

fn whole(node: Node<'_, '_>, min: u64, max: u64) -> Result<u64, ConfigError> {
    let number = match node.value {
        // A float-to-integer cast saturates, so a fraction or an excess shows as a difference.
        Value::Number(number) => {
            number.as_u64().or_else(|| number.as_f64().filter(|n| *n as u64 as f64 == *n).map(|n| n as u64))
        }
        _ => return Err(node.expected("a number")),
    };
    number
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| node.wrong(format!("a whole number from {min} to {max}")))
}

impl<'a> Read<'a> for Cost {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        let tokens = whole(node, 0, Self::MAX.tokens())?;
        Self::new(tokens).map_err(|error| node.wrong(error.to_string()))
    }
}

/// Text that may be a secret: an error never shows it.
#[derive(Clone, Copy)]
pub(super) struct SecretText<'a>(pub(super) &'a str);

impl<'a> Read<'a> for SecretText<'a> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        <&str>::read(node).map(Self)
    }
}

/// Values by name, in the order of the names.
#[derive(Debug)]
pub(super) struct Named<'a, T>(pub(super) Vec<(&'a str, T)>);

impl<T> Default for Named<'_, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T: Read<'a>> Read<'a> for Named<'a, T> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        let mut named = Vec::new();
        for (name, value) in node.object()? {
            named.push((name.as_str(), T::read(Node { value, place: node.place.field(name) })?));
        }
        Ok(Self(named))
    }
}

/// One, or a list of at least one.
#[derive(Debug)]
pub(super) struct OneOrMany<T>(pub(super) Vec<T>);

impl<'a, T: Read<'a>> Read<'a> for OneOrMany<T> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        match node.value {
            Value::Array(items) if items.is_empty() => Err(node.wrong("list at least one, or leave the field out")),
            Value::Array(_) => Vec::read(node).map(Self),
            _ => T::read(node).map(|one| Self(vec![one])),
        }
    }
}
