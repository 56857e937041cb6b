//! YAML or JSON as a tree in which everything knows its place.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use serde_saphyr::{Error, Location, MessageFormatter as _, Options, Spanned, UserMessageFormatter};

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) place: Location,
    pub(super) node: Node,
}

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Names, their places, and what they name.
    Map(Vec<(String, Location, Tree)>),
    List(Vec<Tree>),
    Leaf(Value),
}

/// What a path leads to: as far as it goes in the tree.
pub(super) struct Found<'t> {
    pub(super) tree: &'t Tree,
    /// The place of the last name on the path; that of the value where there is none.
    pub(super) name: Location,
}

/// The documents of a file. The error has its place.
pub(super) fn parse(text: &str) -> Result<Vec<Tree>, (Location, String)> {
    let mut options = Options::default();
    options.strict_booleans = true;
    // A snippet would show the lines around a fault, and with them a secret.
    options.with_snippet = false;
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error: Error| {
        let reason = match &error {
            Error::DuplicateMappingKey { key, .. } => {
                format!("{} is there twice; keep one", key.as_deref().unwrap_or("a field"))
            }
            other => UserMessageFormatter.format_message(other).into_owned(),
        };
        (error.location().unwrap_or(Location::UNKNOWN), reason)
    })
}

impl Tree {
    /// The value under a name.
    pub(super) fn get(&self, name: &str) -> Option<&Self> {
        match &self.node {
            Node::Map(entries) => entries.iter().find(|(known, ..)| known == name).map(|(_, _, value)| value),
            Node::List(_) | Node::Leaf(_) => None,
        }
    }

    /// The text, when it is one.
    pub(super) fn text(&self) -> Option<&str> {
        if let Node::Leaf(Value::String(text)) = &self.node { Some(text) } else { None }
    }

    /// The values that stand in it.
    pub(super) fn children(&self) -> Box<dyn Iterator<Item = &Self> + '_> {
        match &self.node {
            Node::Map(entries) => Box::new(entries.iter().map(|(_, _, value)| value)),
            Node::List(items) => Box::new(items.iter()),
            Node::Leaf(_) => Box::new(std::iter::empty()),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        match &self.node {
            Node::Map(entries) => entries.iter().map(|(name, _, value)| (name.clone(), value.to_json())).collect(),
            Node::List(items) => items.iter().map(Self::to_json).collect(),
            Node::Leaf(value) => value.clone(),
        }
    }

    /// Follows a path such as `rules[2].limits[0].policy`. Names may have dots in them.
    pub(super) fn find(&self, path: &str) -> Found<'_> {
        let (mut tree, mut rest, mut name) = (self, path, self.place);
        loop {
            let next = match &tree.node {
                Node::Map(entries) => {
                    let path = rest.strip_prefix('.').unwrap_or(rest);
                    let after = |known: &str| {
                        path.strip_prefix(known).filter(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                    };
                    let fitting = entries.iter().filter(|(known, ..)| after(known).is_some());
                    // Of `a` and `a.b` the longer.
                    fitting.max_by_key(|(known, ..)| known.len()).map(|(known, at, value)| {
                        name = *at;
                        (value, after(known).unwrap_or_default())
                    })
                }
                Node::List(items) => rest.strip_prefix('[').and_then(|path| {
                    let (index, rest) = path.split_once(']')?;
                    let item = items.get(index.parse::<usize>().ok()?)?;
                    name = item.place;
                    Some((item, rest))
                }),
                Node::Leaf(_) => None,
            };
            match next {
                Some(next) => (tree, rest) = next,
                None => return Found { tree, name },
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Node>::deserialize(deserializer)?;
        Ok(Self { place: referenced, node: value })
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NodeVisitor)
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Node, E> {
        Ok(Node::Leaf(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::Leaf(value.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Node, E> {
        Ok(Node::Leaf(number.into()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Node, E> {
        Ok(Node::Leaf(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(Spanned { value: name, referenced, .. }) = entries.next_key::<Spanned<String>>()? {
            map.push((name, referenced, entries.next_value()?));
        }
        Ok(Node::Map(map))
    }
}
