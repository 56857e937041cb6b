//! Which requests a rule is for.

use crate::{Field, NormalPath, Request};

/// What a request must be for a rule to match; without conditions every request is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// One of these methods, in the very letters; any when none.
    pub methods: Option<Vec<String>>,
    /// A path like this; any when none.
    pub path: Option<PathMatch>,
}

/// A condition on the normalised path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// This path alone.
    Exact(NormalPath),
    /// Every path that begins with these characters: `/api` also takes `/apiary`, as in Envoy's routes.
    Prefix(NormalPath),
}

/// The parts of a request that matching looks at, read once for all rules.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    method: &'a [u8],
    path: NormalPath,
}

impl<'a> Target<'a> {
    pub(crate) fn of(request: &'a dyn Request) -> Self {
        let pseudo = |name| match request.headers().get(name) {
            Field::One(value) => value,
            Field::Absent | Field::Several => &[],
        };
        Self { method: pseudo(":method"), path: NormalPath::of(pseudo(":path")) }
    }
}

impl Matcher {
    pub(crate) fn matches(&self, target: &Target<'_>) -> bool {
        let method = |methods: &Vec<String>| methods.iter().any(|method| method.as_bytes() == target.method);
        self.methods.as_ref().is_none_or(method) && self.path.as_ref().is_none_or(|path| path.matches(&target.path))
    }
}

impl PathMatch {
    fn matches(&self, path: &NormalPath) -> bool {
        match self {
            Self::Exact(exact) => exact == path,
            Self::Prefix(prefix) => path.as_str().starts_with(prefix.as_str()),
        }
    }
}
