//! Path templates: `/users/{id}/orders`.

use crate::{NormalPath, path::segments};

/// What each segment of a path must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Vec<Segment>,
    /// Whether any segments may follow.
    open: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    /// Any one, not empty; with a name or without.
    Any(Option<String>),
}

/// Why a text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// Something that no request's path has.
    #[error("{0:?} is no segment: use the path's own characters, {{name}}, *, or ** at the end")]
    Segment(String),
    /// The path of requests is normalised.
    #[error("requests are compared in their normal form: write {0:?} as {1:?}")]
    NotNormal(String, String),
    /// A name stands twice.
    #[error("{{{0}}} stands twice")]
    Twice(String),
    /// Not a path at all.
    #[error("a template begins with /")]
    NoPath,
}

impl std::str::FromStr for Template {
    type Err = TemplateError;

    fn from_str(text: &str) -> Result<Self, TemplateError> {
        let text = text.strip_prefix('/').ok_or(TemplateError::NoPath)?;
        let (text, open) = match text.strip_suffix("**") {
            Some("") => return Ok(Self { segments: Vec::new(), open: true }),
            Some(rest) => (rest.strip_suffix('/').ok_or_else(|| TemplateError::Segment(text.to_owned()))?, true),
            None => (text, false),
        };
        let mut template = Self { segments: Vec::new(), open };
        let last = text.split('/').count().saturating_sub(1);
        for (index, segment) in text.split('/').enumerate() {
            let segment = match segment {
                "" if index == last && !open => Segment::Literal(String::new()),
                "*" => Segment::Any(None),
                _ => match segment.strip_prefix('{').and_then(|segment| segment.strip_suffix('}')) {
                    Some(name) => Segment::Any(Some(template.name(name)?)),
                    None => Segment::Literal(literal(segment)?),
                },
            };
            template.segments.push(segment);
        }
        Ok(template)
    }
}

fn literal(segment: &str) -> Result<String, TemplateError> {
    let normal = NormalPath::of(segment.as_bytes());
    let normal = normal.as_str().strip_prefix('/').unwrap_or_default();
    if segment.is_empty() || segment.contains(['{', '}', '?', '#']) || segment.contains("**") || normal.is_empty() {
        return Err(TemplateError::Segment(segment.to_owned()));
    }
    if normal != segment {
        return Err(TemplateError::NotNormal(segment.to_owned(), normal.to_owned()));
    }
    Ok(segment.to_owned())
}

impl Template {
    fn name(&self, name: &str) -> Result<String, TemplateError> {
        let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if name.is_empty() || !name.bytes().all(named) {
            return Err(TemplateError::Segment(format!("{{{name}}}")));
        }
        match self.index_of(name) {
            None => Ok(name.to_owned()),
            Some(_) => Err(TemplateError::Twice(name.to_owned())),
        }
    }

    /// The segment that a name stands for, counted from 0.
    pub(crate) fn index_of(&self, name: &str) -> Option<usize> {
        self.segments.iter().position(|segment| matches!(segment, Segment::Any(Some(known)) if known == name))
    }

    /// The names, as they would be written.
    pub(crate) fn names(&self) -> Vec<&str> {
        let name = |segment| match segment {
            &Segment::Any(Some(ref name)) => Some(name.as_str()),
            Segment::Any(None) | Segment::Literal(_) => None,
        };
        self.segments.iter().filter_map(name).collect()
    }

    /// The same with every literal as `change` makes it.
    pub(crate) fn map(mut self, change: impl Fn(&str) -> String) -> Self {
        for segment in &mut self.segments {
            if let Segment::Literal(text) = segment {
                *text = change(text);
            }
        }
        self
    }

    /// The same without a slash at the end.
    pub(crate) fn without_slash(mut self) -> Self {
        if self.segments.len() > 1 {
            self.segments.pop_if(|segment| matches!(segment, Segment::Literal(text) if text.is_empty()));
        }
        self
    }

    pub(crate) fn matches(&self, path: &str) -> bool {
        let mut found = segments(path);
        let begins = self.segments.iter().all(|segment| match (segment, found.next()) {
            (_, None) => false,
            (Segment::Literal(text), Some(found)) => text == found,
            (Segment::Any(_), Some(found)) => !found.is_empty(),
        });
        begins && (self.open || found.next().is_none())
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(template: &str, matching: &[&str], others: &[&str]) {
        let parsed: Template = template.parse().unwrap();
        for path in matching {
            assert!(parsed.matches(path), "{template} {path}");
        }
        for path in others {
            assert!(!parsed.matches(path), "{template} {path}");
        }
    }

    #[test]
    fn a_name_is_one_segment() {
        check(
            "/users/{id}/orders",
            &["/users/7/orders", "/users/a%2Fb/orders"],
            &["/users/7", "/users/7/orders/", "/users/7/orders/1", "/users/7/8/orders", "/user/7/orders", "/"],
        );
        check("/{a}/{b}", &["/1/2"], &["/1/", "/1", "/1/2/"]);
        check("/a/", &["/a/"], &["/a", "/a/b"]);
        check("/", &["/"], &["/a"]);
        check("/*/x", &["/a/x"], &["//x", "/a/b/x"]);
        assert_eq!("/u/{a}/x/{b}".parse::<Template>().unwrap().index_of("b"), Some(3));
    }

    #[test]
    fn two_stars_are_any_rest() {
        check("/t/{t}/**", &["/t/1", "/t/1/", "/t/1/a/b"], &["/t/", "/t", "/u/1/a"]);
        check("/**", &["/", "/a", "/a/b/"], &[]);
    }

    #[test]
    fn what_no_path_could_match_is_refused() {
        for (bad, part) in [
            ("", "begins with /"),
            ("users", "begins with /"),
            ("/a//b", "no segment"),
            ("/a/{}", "no segment"),
            ("/a/{b c}", "no segment"),
            ("/a{b}", "no segment"),
            ("/a**", "no segment"),
            ("/**/a", "no segment"),
            ("/a/?b", "no segment"),
            ("/a/../b", "no segment"),
            ("/a/%6c", "write \"%6c\" as \"l\""),
            ("/a/é", "as \"%C3%A9\""),
            ("/{a}/{a}", "{a} stands twice"),
        ] {
            let error = bad.parse::<Template>().unwrap_err().to_string();
            assert!(error.contains(part), "{bad}: {error}");
        }
    }
}
