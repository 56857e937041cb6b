//! Percent-encoding (RFC 3986 section 2.1), decoded.

/// The byte that two hex digits stand for, and what follows them.
pub(crate) fn triplet(after_percent: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, rest) = after_percent.split_first_chunk::<2>()?;
    // `from_str_radix` alone would take a sign.
    let digits = std::str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u8::from_str_radix(digits, 16).ok().map(|byte| (byte, rest))
}

/// Each triplet as the byte it stands for, once; a percent sign without two hex digits stays.
pub(crate) fn decode(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        let (decoded, after) = triplet(after).filter(|_| *byte == b'%').unwrap_or((*byte, after));
        bytes.push(decoded);
        rest = after;
    }
    bytes
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn triplets_are_decoded_once() {
        for (text, expected) in [
            ("", &b""[..]),
            ("a%62c", b"abc"),
            ("%00%fF", b"\0\xff"),
            ("%2541", b"%41"),
            ("%", b"%"),
            ("%4", b"%4"),
            ("%+1", b"%+1"),
            ("%zz", b"%zz"),
        ] {
            assert_eq!(decode(text.as_bytes()), expected, "{text}");
        }
    }
}
