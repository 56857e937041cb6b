//! Cookies of a request (RFC 6265 section 4.2.1).

use crate::{Headers, percent};

/// Every value sent under a cookie's name. HTTP/2 clients may send each cookie in a line of its own.
///
/// Quotes around a value and percent-encoding are taken off, as many servers do: neither is a way to another bucket.
pub(crate) fn all<'a>(headers: &'a Headers, name: &'a str) -> impl Iterator<Item = Vec<u8>> {
    let pairs = headers.all("cookie").flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.filter_map(move |pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        let (sent, value) = (halves.next()?.trim_ascii(), halves.next()?.trim_ascii());
        let bare = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value);
        (sent == name.as_bytes()).then(|| percent::decode(bare))
    })
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(lines: &[&[u8]], expected: &[&[u8]]) {
        let headers = Headers::new(lines.iter().map(|line| (b"Cookie".to_vec(), line.to_vec())).collect());
        assert_eq!(all(&headers, "sid").collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_cookie_is_found_by_its_name() {
        check(&[b"sid=abc"], &[b"abc"]);
        check(&[b"a=1;  sid = abc ; b=2"], &[b"abc"]);
        check(&[b"a=1", b"sid=abc"], &[b"abc"]);
        check(&[b"sid=a=b=="], &[b"a=b=="]);
        check(&[b"sid="], &[b""]);
        check(&[b"sid=\xff"], &[b"\xff"]);
        check(&[b"SID=x; xsid=y; sidx=z; sid; =sid"], &[]);
        check(&[], &[]);
    }

    #[test]
    fn a_spelling_is_no_other_value() {
        check(&[b"sid=\"abc\""], &[b"abc"]);
        check(&[b"sid=%61b%63"], &[b"abc"]);
        check(&[b"sid=\""], &[b"\""]);
    }

    #[test]
    fn every_one_of_several_is_found() {
        check(&[b"sid=a; sid=b"], &[b"a", b"b"]);
        check(&[b"sid=a", b"sid=a"], &[b"a", b"a"]);
    }
}
