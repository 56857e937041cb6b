//! Header names and values that are safe to put on the wire, and which headers are ours.

use std::{borrow::Cow, fmt};

use crate::Headers;

/// A header's name in lower case: a token of RFC 9110 section 5.1, so never a pseudo-header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HeaderName(String);

/// Why a text is not the name of a header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a header name: use letters, digits and - _ only")]
pub struct HeaderNameError(String);

impl HeaderName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for HeaderName {
    type Err = HeaderNameError;

    fn from_str(text: &str) -> Result<Self, HeaderNameError> {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if text.is_empty() || !text.bytes().all(token) {
            return Err(HeaderNameError(text.to_owned()));
        }
        Ok(Self(text.to_ascii_lowercase()))
    }
}

/// A header's value without control characters: the proxy writes what it is given, so one CR LF here would be a second
/// header, and one NUL a broken response.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderValue(String);

impl HeaderValue {
    /// A value of this text, with `?` for each control character.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.chars().map(|character| if character.is_control() { '?' } else { character }).collect())
    }

    /// A value of these bytes, if they are printable ASCII and at most `max_bytes` long: what a client sent is copied
    /// as it is or not at all.
    #[must_use]
    pub fn printable(bytes: &[u8], max_bytes: usize) -> Option<Self> {
        let printable = bytes.len() <= max_bytes && bytes.iter().all(u8::is_ascii_graphic);
        let text = std::str::from_utf8(bytes).ok().filter(|text| printable && !text.is_empty())?;
        Some(Self(text.to_owned()))
    }

    /// The value as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Values may be tokens: logs never show them.
impl fmt::Debug for HeaderValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("HeaderValue(..)")
    }
}

impl From<u64> for HeaderValue {
    fn from(number: u64) -> Self {
        Self(number.to_string())
    }
}

/// One header of an answer: its name in lower case, and its value.
pub type HeaderLine = (Cow<'static, str>, HeaderValue);

/// Whether a name is one of Sluicegate's own: only filter and service set those.
#[must_use]
pub(crate) fn is_own(name: &[u8]) -> bool {
    let own = sluicegate_wire::header::MARKER.as_bytes();
    name.get(..own.len()).is_some_and(|start| start.eq_ignore_ascii_case(own))
}

/// The names among these that only Sluicegate may set: what a client sent under them never reaches the upstream.
pub fn own_headers(headers: &Headers) -> impl Iterator<Item = &[u8]> {
    headers.names().filter(|name| is_own(name))
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn names_are_tokens_in_lower_case() {
        assert_eq!("X-Api-Key".parse::<HeaderName>().unwrap().as_str(), "x-api-key");
        for bad in ["", ":path", "a b", "a:b", "é", "a\r\nb", "a\0"] {
            assert!(bad.parse::<HeaderName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn values_never_hold_a_control_character() {
        assert_eq!(HeaderValue::new("a\r\nset-cookie: x\0\u{7f}\té").as_str(), "a??set-cookie: x???é");
        assert_eq!(HeaderValue::printable(b"abc-1", 5).unwrap().as_str(), "abc-1");
        for bad in [&b""[..], b"abcdef", b"a b", b"a\n", b"\xff", b"a\x7f"] {
            assert!(HeaderValue::printable(bad, 5).is_none(), "{bad:?}");
        }
        assert_eq!(format!("{:?}", HeaderValue::new("secret")), "HeaderValue(..)");
    }

    #[test]
    fn every_header_of_ours_is_known_in_any_case() {
        for name in ["x-sluicegate", "X-Sluicegate-Reason", "x-sluicegate-timeout-ms", "x-sluicegatefoo"] {
            assert!(is_own(name.as_bytes()), "{name}");
        }
        for name in ["x-sluice", "sluicegate", "ratelimit", ""] {
            assert!(!is_own(name.as_bytes()), "{name}");
        }
    }
}
