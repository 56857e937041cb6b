//! Errors as RFC 9457 problem details (`application/problem+json`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// One problem details object (RFC 9457 section 3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// What kind of problem this is, as a URI (`about:blank` when the status says it all).
    #[serde(rename = "type")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub kind: Cow<'static, str>,
    /// A short text that is the same for every problem of this kind.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub title: Cow<'static, str>,
    /// The HTTP status.
    pub status: u16,
    /// What went wrong this time and how to mend it; empty when there is nothing to add.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub detail: Cow<'static, str>,
    /// For [`Problem::QUOTA_EXCEEDED`]: the limits that denied
    /// (draft-ietf-httpapi-ratelimit-headers-10, section "Problem Types").
    #[serde(default, rename = "violated-policies", skip_serializing_if = "Vec::is_empty")]
    pub violated_policies: Vec<String>,
}

impl Problem {
    /// The media type of a problem details object.
    pub const CONTENT_TYPE: &'static str = "application/problem+json";
    /// Over a limit (draft-ietf-httpapi-ratelimit-headers-10).
    pub const QUOTA_EXCEEDED: &'static str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    /// Refused because the limiter could not decide, not because a limit was reached (same draft).
    pub const TEMPORARY_REDUCED_CAPACITY: &'static str =
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";

    /// A problem that its status describes well enough.
    #[must_use]
    pub fn plain(status: u16, title: &'static str, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: Cow::Borrowed("about:blank"),
            title: Cow::Borrowed(title),
            status,
            detail: detail.into(),
            violated_policies: Vec::new(),
        }
    }

    /// A request denied by the limits named.
    #[must_use]
    pub fn quota_exceeded(status: u16, violated_policies: Vec<String>) -> Self {
        Self {
            kind: Cow::Borrowed(Self::QUOTA_EXCEEDED),
            title: Cow::Borrowed("Quota exceeded"),
            status,
            detail: Cow::Borrowed(""),
            violated_policies,
        }
    }

    /// A request refused by a failure verdict: the limiter could not be asked.
    #[must_use]
    pub fn temporary_reduced_capacity(status: u16, detail: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind: Cow::Borrowed(Self::TEMPORARY_REDUCED_CAPACITY),
            title: Cow::Borrowed("Temporarily reduced capacity"),
            status,
            detail: detail.into(),
            violated_policies: Vec::new(),
        }
    }

    /// The object as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A struct of strings and numbers has no key or value that JSON can't hold, so the fallback never shows.
        serde_json::to_string(self).unwrap_or_default()
    }
}
