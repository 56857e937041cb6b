//! A value of the configuration and where it stands: what every type of the configuration is read from.
//!
//! By hand rather than by serde's derive, for less code in the filter and more to say about a fault.

use serde_json::{Map, Value};

use super::{ConfigError, place::Place};

/// A value, and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'p, 'a> {
    pub(super) value: &'a Value,
    pub(super) place: Place<'p>,
}

/// What can be read from a value.
pub(super) trait Read<'a>: Sized {
    /// Reads the value, or says what is wrong with it.
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError>;

    /// What leaving the field out means; none when it must be there.
    fn absent() -> Option<Self> {
        None
    }
}

impl<'p, 'a> Node<'p, 'a> {
    /// The text, when it is one.
    pub(super) fn text(&self) -> Option<&'a str> {
        self.value.as_str()
    }

    pub(super) fn wrong(&self, problem: impl Into<String>) -> ConfigError {
        self.place.wrong(problem)
    }

    /// That the value is of another kind. Never shows the value itself: it may be a secret.
    pub(super) fn expected(&self, expected: &str) -> ConfigError {
        let found = match self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.wrong(format!("must be {expected}, not {found}"))
    }

    pub(super) fn object(&self) -> Result<&'a Map<String, Value>, ConfigError> {
        self.value.as_object().ok_or_else(|| self.expected("an object"))
    }

    /// The fields of an object that has no others than these.
    pub(super) fn fields(self, known: &[&str]) -> Result<Fields<'p, 'a>, ConfigError> {
        let map = self.object()?;
        match map.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(Fields { place: self.place, map }),
            Some(unknown) => {
                let problem = format!("unknown field `{unknown}`, expected one of {}", quoted(known));
                Err(self.place.field(unknown).wrong(problem))
            }
        }
    }
}

/// The fields of an object.
pub(super) struct Fields<'p, 'a> {
    place: Place<'p>,
    map: &'a Map<String, Value>,
}

impl<'a> Fields<'_, 'a> {
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    pub(super) fn get<T: Read<'a>>(&self, name: &str) -> Result<T, ConfigError> {
        match self.map.get(name) {
            Some(value) => T::read(Node { value, place: self.place.field(name) }),
            None => T::absent().ok_or_else(|| self.place.wrong(format!("missing field `{name}`"))),
        }
    }
}

/// Names in a sentence.
pub(super) fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

/// Reads an object by its fields, each under its own name or the one given. A field may be left out when its type says
/// what that means. Leaving out is not `null`: an empty value in YAML is an oversight.
macro_rules! object {
    ($type:ident $(<$life:lifetime>)? { $($field:ident $(= $name:literal)?),* $(,)? }) => {
        impl<'a> $crate::config::node::Read<'a> for $type$(<$life>)? {
            fn read(node: $crate::config::node::Node<'_, 'a>) -> Result<Self, $crate::ConfigError> {
                let fields = node.fields(&[$($crate::config::node::object!(@name $field $($name)?)),*])?;
                Ok(Self { $($field: fields.get($crate::config::node::object!(@name $field $($name)?))?),* })
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}
pub(super) use object;

impl<'a, T: Read<'a>> Read<'a> for Option<T> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        T::read(node).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<'a, T: Read<'a>> Read<'a> for Vec<T> {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        let Value::Array(values) = node.value else { return Err(node.expected("a list")) };
        let mut items = Self::new();
        for (index, value) in values.iter().enumerate() {
            items.push(T::read(Node { value, place: node.place.item(index) })?);
        }
        Ok(items)
    }
}

impl<'a> Read<'a> for &'a str {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        // Without quotes a text may be read as a number.
        node.text().ok_or_else(|| node.expected("a text in quotes"))
    }
}

impl<'a> Read<'a> for bool {
    fn read(node: Node<'_, 'a>) -> Result<Self, ConfigError> {
        node.value.as_bool().ok_or_else(|| node.expected("true or false"))
    }
}

/// Reads one of some words.
macro_rules! words {
    ($type:ident { $($word:literal => $variant:ident),* $(,)? }) => {
        impl $type {
            pub(super) const WORDS: &[&str] = &[$($word),*];
        }

        impl<'a> $crate::config::node::Read<'a> for $type {
            fn read(node: $crate::config::node::Node<'_, 'a>) -> Result<Self, $crate::ConfigError> {
                match node.text() {
                    $(Some($word) => Ok(Self::$variant),)*
                    _ => Err(node.wrong(format!("use one of {}", $crate::config::node::quoted(Self::WORDS)))),
                }
            }
        }
    };
}
pub(super) use words;
