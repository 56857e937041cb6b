//! Conditions on a request's path.

use crate::{NormalPath, doubt::Doubt, pattern::Pattern, template::Template, view::View};

/// A condition on the normalised path, which has no query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMatch {
    form: PathForm,
    options: PathOptions,
}

/// How a path is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathForm {
    /// This path alone.
    Exact(NormalPath),
    /// Every path that begins with these characters: `/api` also takes `/apiary`, as in Envoy's routes.
    Prefix(NormalPath),
    /// The whole path matches.
    Regex(Pattern),
    /// Segment by segment.
    Template(Template),
}

/// What makes no difference. By default everything does: to HTTP, and to most servers, `/login/` and `/Login` are other
/// paths than `/login`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathOptions {
    /// The case of ASCII letters.
    pub ignore_case: bool,
    /// A slash at the end. A prefix `/api/` takes `/api` too then.
    pub ignore_slash: bool,
}

impl PathMatch {
    /// A condition; what it says is brought into the form in which paths are compared.
    #[must_use]
    pub fn new(form: PathForm, options: PathOptions) -> Self {
        let case = |path: NormalPath| if options.ignore_case { path.to_lower_case() } else { path };
        let form = match form {
            PathForm::Exact(path) => PathForm::Exact(case(path)),
            PathForm::Prefix(path) => PathForm::Prefix(case(path)),
            PathForm::Regex(pattern) => PathForm::Regex(pattern),
            PathForm::Template(template) => {
                let template = if options.ignore_slash { template.without_slash() } else { template };
                let case = |text: &str| if options.ignore_case { text.to_ascii_lowercase() } else { text.to_owned() };
                PathForm::Template(template.map(case))
            }
        };
        Self { form, options }
    }

    /// What makes no difference.
    #[must_use]
    pub const fn options(&self) -> PathOptions {
        self.options
    }

    /// Whether it may be in doubt.
    pub(crate) const fn is_pattern(&self) -> bool {
        matches!(self.form, PathForm::Regex(_))
    }

    /// The template, when it is one.
    pub(crate) const fn template(&self) -> Option<&Template> {
        match &self.form {
            PathForm::Template(template) => Some(template),
            PathForm::Exact(_) | PathForm::Prefix(_) | PathForm::Regex(_) => None,
        }
    }

    pub(crate) fn matches(&self, view: &View<'_>, doubt: &Doubt) -> bool {
        let whole = view.path(self.options.ignore_case).as_str();
        let path = self.without_slash(whole);
        match &self.form {
            PathForm::Exact(exact) => self.without_slash(exact.as_str()) == path,
            PathForm::Prefix(prefix) => {
                whole.starts_with(prefix.as_str())
                    || self.options.ignore_slash && prefix.as_str().strip_suffix('/') == Some(whole)
            }
            PathForm::Regex(pattern) => doubt.settle(pattern.matches(path)),
            PathForm::Template(template) => template.matches(path),
        }
    }

    fn without_slash<'a>(&self, path: &'a str) -> &'a str {
        match path.strip_suffix('/') {
            Some(bare) if self.options.ignore_slash && !bare.is_empty() => bare,
            Some(_) | None => path,
        }
    }
}
