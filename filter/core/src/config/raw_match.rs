//! `match` as written.

use super::{
    forms::OneOrMany,
    node::{object, words},
};

/// What a request must be; each field that is there must hold.
#[derive(Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub(super) struct RawMatch<'a> {
    /// One of these methods, in capitals.
    pub(super) methods: Option<OneOrMany<&'a str>>,
    /// A path like this.
    pub(super) path: Option<RawPath<'a>>,
    /// One of these hosts, without port; `*.example.com` is every host below `example.com`.
    pub(super) hosts: Option<OneOrMany<&'a str>>,
    /// Headers, each as it says.
    pub(super) headers: Option<Vec<RawHeaderMatch<'a>>>,
    /// A client with an address in one of these ranges, such as `10.0.0.0/8` or `2001:db8::/32`.
    pub(super) client: Option<OneOrMany<&'a str>>,
    /// One of these routes of the proxy, by name.
    pub(super) route: Option<OneOrMany<&'a str>>,
}
object!(RawMatch<'a> { methods, path, hosts, headers, client, route });

/// One of `exact`, `prefix`, `regex` and `template`, on the normalised path without its query.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = super::schema::one_of(&["exact", "prefix", "regex", "template"]))))]
pub(super) struct RawPath<'a> {
    /// This path alone.
    pub(super) exact: Option<&'a str>,
    /// Every path that begins so.
    pub(super) prefix: Option<&'a str>,
    /// The whole path must match this regular expression.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::Regex>"))]
    pub(super) regex: Option<&'a str>,
    /// Segments: literals, `{name}` and `*` for any one, `**` at the end for any rest.
    pub(super) template: Option<&'a str>,
    /// Whether `/Login` is `/login`. False without.
    pub(super) ignore_case: Option<bool>,
    /// Whether `/login/` is `/login`: `ignore` when it is. `strict` without.
    pub(super) trailing_slash: Option<RawSlash>,
}
object!(RawPath<'a> { exact, prefix, regex, template, ignore_case, trailing_slash });

/// Whether a slash at the end makes another path.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename_all = "snake_case"))]
pub(super) enum RawSlash {
    Strict,
    Ignore,
}
words!(RawSlash { "strict" => Strict, "ignore" => Ignore });

/// A condition on a header: its name, and one of the other fields.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
#[cfg_attr(feature = "schema", schemars(extend("oneOf" = super::schema::one_of(&["present", "absent", "equals", "regex"]))))]
pub(super) struct RawHeaderMatch<'a> {
    /// The header's name.
    #[cfg_attr(feature = "schema", schemars(with = "super::schema::HeaderName"))]
    pub(super) name: &'a str,
    /// It is there, with any value: `true`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::True>"))]
    pub(super) present: Option<bool>,
    /// It is not there: `true`.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::True>"))]
    pub(super) absent: Option<bool>,
    /// Its value is this.
    pub(super) equals: Option<&'a str>,
    /// Its whole value matches this regular expression.
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::schema::Regex>"))]
    pub(super) regex: Option<&'a str>,
}
object!(RawHeaderMatch<'a> { name, present, absent, equals, regex });
