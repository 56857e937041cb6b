//! The form of a path that rules compare: one text for every spelling that a server may read as the same path.

use std::fmt::Write as _;

use crate::percent::{self, triplet};

/// A path without its query, normalised: always begins with `/`, printable ASCII only.
///
/// - `%6C` and `l` are one character (RFC 3986 section 6.2.2.2), and so is every other character that can stand in a
///   path as it is (`%3A` and `:`): most servers decode before they route. `%2F` stays, because servers disagree on it;
///   the proxy's own `path_with_escaped_slashes_action` decides what becomes of it.
/// - What can't stand in a path as it is gets encoded, so a byte 0xFF and `%ff` are one.
/// - `\` is `/`, as in the URLs of browsers and of many servers (WHATWG URL) and in Envoy's `normalize_path`; `%5C` stays.
/// - `.` and `..` segments are resolved (RFC 3986 section 5.2.4), then empty segments go: the order of Envoy's
///   `normalize_path` and `merge_slashes`.
///
/// Letter case, a slash at the end and `;parameters` stay as they are: to HTTP each makes another path. For a server that
/// sees it otherwise a rule can say so (`ignore_case`, `trailing_slash`, a `regex` such as `/login(;.*)?`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NormalPath(String);

impl NormalPath {
    /// The normal form of a request's path, with or without a query. No path at all (`CONNECT`) is `/`.
    #[must_use]
    pub fn of(path: &[u8]) -> Self {
        let path = path.split(|byte| matches!(byte, b'?' | b'#')).next().unwrap_or_default();
        Self(resolve(&respell(path)))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A segment, counted from 0, with its characters decoded; none when the path has fewer, or when it is the empty one
    /// after a slash at the end.
    pub(crate) fn segment(&self, index: usize) -> Option<Vec<u8>> {
        let segment = segments(&self.0).nth(index).filter(|segment| !segment.is_empty())?;
        Some(percent::decode(segment.as_bytes()))
    }

    pub(crate) fn to_lower_case(&self) -> Self {
        Self(self.0.to_ascii_lowercase())
    }
}

/// What stands between the slashes.
pub(crate) fn segments(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('/').unwrap_or(path).split('/')
}

/// Each character in its one spelling.
fn respell(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    let mut rest = path;
    while let [byte, after @ ..] = rest {
        rest = after;
        if let (b'%', Some((decoded, after))) = (byte, triplet(after)) {
            rest = after;
            push(&mut text, decoded, decoded != b'/');
        } else {
            push(&mut text, if *byte == b'\\' { b'/' } else { *byte }, true);
        }
    }
    text
}

fn push(text: &mut String, byte: u8, literally: bool) {
    // `pchar` of RFC 3986 section 3.3, and the slash between segments.
    if literally && (byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte)) {
        text.push(char::from(byte));
    } else {
        // Writing to a String can't fail.
        let _ = write!(text, "%{byte:02X}");
    }
}

/// Dot segments resolved, empty segments gone.
fn resolve(path: &str) -> String {
    let path = path.strip_prefix('/').unwrap_or(path);
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            // An empty segment counts here: `/a//..` is `/a/`.
            _ => segments.push(segment),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    let mut normal = String::with_capacity(path.len().saturating_add(1));
    for segment in &segments {
        normal.push('/');
        normal.push_str(segment);
    }
    if segments.is_empty() || matches!(path.rsplit('/').next(), Some("" | "." | "..")) {
        normal.push('/');
    }
    normal
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(path: impl AsRef<[u8]>, expected: &str) {
        let path = path.as_ref();
        assert_eq!(NormalPath::of(path).as_str(), expected, "{}", path.escape_ascii());
    }

    #[test]
    fn every_spelling_of_login_is_login() {
        for path in [
            "/login",
            "//login",
            "/./login",
            "/%6cogin",
            "/%6Cogin",
            "/a/../login",
            "/../login",
            "/a//../../login",
            "/%2e/login",
            "/a/%2E%2e/login",
            "/a/.%2e/login",
            "/login?next=/",
            "/login#top",
            "/.//./login",
            "\\login",
            "/\\login",
            "/a/..\\login",
            "/a\\b\\%2E.\\..\\login",
            "login",
        ] {
            check(path, "/login");
        }
    }

    #[test]
    fn other_paths_stay_other_paths() {
        for path in [
            "/login/",
            "/LOGIN",
            "/login;x",
            "/login%2F",
            "/login%20",
            "/login...",
            "/.login",
            "/login%3F",
            "/login%5C",
        ] {
            check(path, path);
        }
    }

    #[test]
    fn a_slash_at_the_end_stays() {
        check("/a/", "/a/");
        check("/a//", "/a/");
        check("/a/.", "/a/");
        check("/a/b/..", "/a/");
        check("/a//..", "/a/");
        check("/a/..", "/");
    }

    #[test]
    fn no_path_is_the_root() {
        for path in ["", "/", "//", "/.", "/..", "?q", "/?q=/login"] {
            check(path, "/");
        }
        check("*", "/*");
    }

    #[test]
    fn a_character_has_one_spelling() {
        check("/a%3ab", "/a:b");
        check("/a%40b!", "/a@b!");
        check("/caf\u{e9}", "/caf%C3%A9");
        check("/caf%c3%a9", "/caf%C3%A9");
        check(b"/\xff\x00\x7f \"", "/%FF%00%7F%20%22");
        check("/a%2fb", "/a%2Fb");
        check("/%", "/%25");
        check("/%zz%+1%4", "/%25zz%25+1%254");
        // Decoding once only: this is a percent sign and "6c", not an l.
        check("/%256cogin", "/%256cogin");
    }
}
