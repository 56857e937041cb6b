//! The query of a request, as servers read forms (WHATWG URL, "application/x-www-form-urlencoded parsing").

use crate::percent;

/// Every value sent under a parameter's name. `+` is a blank, and names and values are percent-decoded; a name without
/// `=` has an empty value.
pub(crate) fn all<'a>(path: &'a [u8], name: &'a str) -> impl Iterator<Item = Vec<u8>> {
    let without_fragment = path.split(|byte| *byte == b'#').next().unwrap_or_default();
    let query = without_fragment.splitn(2, |byte| *byte == b'?').nth(1).unwrap_or_default();
    query.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).filter_map(move |pair| {
        let mut halves = pair.splitn(2, |byte| *byte == b'=');
        is(halves.next()?, name.as_bytes()).then(|| decode(halves.next().unwrap_or_default()))
    })
}

/// Whether a text stands for `name`. Most are told apart without decoding: a query may be thousands of them.
fn is(text: &[u8], name: &[u8]) -> bool {
    let coded = || text.len() <= name.len().saturating_mul(3) && text.iter().any(|byte| matches!(byte, b'%' | b'+'));
    text == name || coded() && decode(text) == name
}

fn decode(text: &[u8]) -> Vec<u8> {
    let blanks: Vec<u8> = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    percent::decode(&blanks)
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(path: &[u8], expected: &[&[u8]]) {
        assert_eq!(all(path, "key").collect::<Vec<_>>(), expected, "{}", path.escape_ascii());
    }

    #[test]
    fn a_parameter_is_found_by_its_name() {
        check(b"/?key=abc", &[b"abc"]);
        check(b"/a?x=1&key=abc&y=2", &[b"abc"]);
        check(b"/?key=a=b?c", &[b"a=b?c"]);
        check(b"/?key=", &[b""]);
        check(b"/?key", &[b""]);
        check(b"/?&&key=\xff#key=x", &[b"\xff"]);
        check(b"/key=abc", &[]);
        check(b"/?KEY=1&akey=2&keyb=3", &[]);
        check(b"", &[]);
    }

    #[test]
    fn a_spelling_is_no_other_name_or_value() {
        check(b"/?k%65y=%61bc", &[b"abc"]);
        check(b"/?%6B%65%79=abc", &[b"abc"]);
        check(b"/?%6B%65%79%20=abc&+key=abc", &[]);
        check(b"/?key=a+b%2Bc%26", &[b"a b+c&"]);
        check(b"/?key=%00%zz%", &[b"\0%zz%"]);
    }

    #[test]
    fn every_one_of_several_is_found() {
        check(b"/?key=a&key=b", &[b"a", b"b"]);
    }
}
