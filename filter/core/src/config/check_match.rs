//! `match`, from as written to as applied.

use super::{
    ConfigError,
    forms::OneOrMany,
    place::Place,
    raw_match::{RawHeaderMatch, RawMatch, RawPath, RawSlash},
};
use crate::{
    HeaderIs, HeaderMatch, HeaderName, Matcher, NormalPath, PathForm, PathMatch, PathOptions, Pattern,
    header::{HeaderNameError, is_own},
};

pub(super) fn matcher(place: &Place<'_>, raw: RawMatch<'_>) -> Result<Matcher, ConfigError> {
    let mut headers = Vec::new();
    for (index, raw) in raw.headers.into_iter().flatten().enumerate() {
        headers.push(header(&place.field("headers").item(index), raw)?);
    }
    let path = match raw.path {
        Some(raw) => Some(path_match(&place.field("path"), raw)?),
        None => None,
    };
    Ok(Matcher {
        methods: each(&place.field("methods"), raw.methods, method)?,
        path,
        hosts: each(&place.field("hosts"), raw.hosts, parsed)?,
        headers,
        client: each(&place.field("client"), raw.client, parsed)?,
        route: each(&place.field("route"), raw.route, route)?,
    })
}

/// Each of the texts as `form` makes it.
fn each<T>(
    place: &Place<'_>,
    raw: Option<OneOrMany<&str>>,
    form: fn(&str) -> Result<T, String>,
) -> Result<Option<Vec<T>>, ConfigError> {
    let Some(OneOrMany(texts)) = raw else { return Ok(None) };
    let mut items = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        items.push(form(text).map_err(|problem| place.item(index).wrong(problem))?);
    }
    Ok(Some(items))
}

fn method(text: &str) -> Result<String, String> {
    let known = text.parse::<HeaderName>().is_ok() && text == text.to_ascii_uppercase();
    if known { Ok(text.to_owned()) } else { Err("write methods in capitals, such as GET".to_owned()) }
}

fn route(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("the name of a route of the proxy".to_owned()) } else { Ok(text.to_owned()) }
}

fn parsed<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn path_match(place: &Place<'_>, raw: RawPath<'_>) -> Result<PathMatch, ConfigError> {
    let options = PathOptions {
        ignore_case: raw.ignore_case.unwrap_or(false),
        ignore_slash: raw.trailing_slash == Some(RawSlash::Ignore),
    };
    let (field, form) = match raw {
        RawPath { exact: Some(text), prefix: None, regex: None, template: None, .. } => {
            ("exact", normal(text).map(PathForm::Exact))
        }
        RawPath { exact: None, prefix: Some(text), regex: None, template: None, .. } => {
            ("prefix", normal(text).map(PathForm::Prefix))
        }
        RawPath { exact: None, prefix: None, regex: Some(text), template: None, .. } => {
            ("regex", pattern(text, options.ignore_case).map(PathForm::Regex))
        }
        RawPath { exact: None, prefix: None, regex: None, template: Some(text), .. } => {
            ("template", parsed(text).map(PathForm::Template))
        }
        RawPath { .. } => return Err(place.wrong("give one of exact, prefix, regex and template")),
    };
    let form = form.map_err(|problem| place.field(field).wrong(problem))?;
    Ok(PathMatch::new(form, options))
}

/// A path that requests can have after normalisation. Another could never match, or match more than it seems to.
fn normal(text: &str) -> Result<NormalPath, String> {
    let normal = NormalPath::of(text.as_bytes());
    if normal.as_str() == text {
        return Ok(normal);
    }
    Err(format!("requests are compared in their normal form, without a query: write it as {:?}", normal.as_str()))
}

fn pattern(text: &str, ignore_case: bool) -> Result<Pattern, String> {
    Pattern::new(text, ignore_case).map_err(|error| error.to_string())
}

fn header(place: &Place<'_>, raw: RawHeaderMatch<'_>) -> Result<HeaderMatch, ConfigError> {
    let field = |name: &str, problem: String| place.field(name).wrong(problem);
    let name = header_name(raw.name).map_err(|problem| field("name", problem))?;
    let is = match raw {
        RawHeaderMatch { present: Some(true), absent: None, equals: None, regex: None, .. } => HeaderIs::Present,
        RawHeaderMatch { present: None, absent: Some(true), equals: None, regex: None, .. } => HeaderIs::Absent,
        RawHeaderMatch { present: None, absent: None, equals: Some(value), regex: None, .. } => {
            if value.trim_ascii() != value || value.chars().any(char::is_control) {
                return Err(field("equals", "no header has blanks around its value, or control characters".to_owned()));
            }
            HeaderIs::Equal(value.to_owned())
        }
        RawHeaderMatch { present: None, absent: None, equals: None, regex: Some(text), .. } => {
            HeaderIs::Like(pattern(text, false).map_err(|problem| field("regex", problem))?)
        }
        _ => return Err(place.wrong("give one of present: true, absent: true, equals and regex")),
    };
    Ok(HeaderMatch { name, is })
}

/// The name of a header that requests can have.
pub(super) fn header_name(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text.parse().map_err(|error: HeaderNameError| error.to_string())?;
    if name.as_str() == "host" {
        return Err("the proxy hands the host over as a pseudo-header, so no request has this one: use host".to_owned());
    }
    if is_own(name.as_str().as_bytes()) {
        return Err("this header is Sluicegate's own and never comes from a client".to_owned());
    }
    Ok(name)
}
