//! Where in the configuration something stands.

use std::fmt;

use super::ConfigError;

/// A path from the top, such as `rules[2].limits[0].policy`. It lives on the stack of whoever goes down it, so that a
/// configuration without faults costs no text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'a> {
    Top,
    Field(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl<'a> Place<'a> {
    pub(super) const fn field(&'a self, name: &'a str) -> Self {
        Self::Field(self, name)
    }

    pub(super) const fn item(&'a self, index: usize) -> Self {
        Self::Item(self, index)
    }

    /// That there is something wrong here.
    pub(super) fn wrong(&self, problem: impl Into<String>) -> ConfigError {
        ConfigError::field(self.to_string(), problem)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Top => formatter.write_str("configuration"),
            Self::Field(Self::Top, name) => formatter.write_str(name),
            Self::Field(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}
