//! Header lists as the proxy-wasm ABI lays them out (ABI v0.2.1, "Serialization"): a count, then the two lengths of
//! each pair, all u32 little-endian, then each name and value with a zero byte after it.

use crate::Headers;

/// The layout of these pairs.
#[must_use]
pub fn encode<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> Vec<u8> {
    let mut bytes = length(pairs.clone().count()).to_vec();
    for (name, value) in pairs.clone() {
        bytes.extend(length(name.len()));
        bytes.extend(length(value.len()));
    }
    for text in pairs.flat_map(|(name, value)| [name, value]) {
        bytes.extend_from_slice(text.as_bytes());
        bytes.push(0);
    }
    bytes
}

/// The pairs in this layout; none when the bytes are not in it. Names and values are any bytes.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<Headers> {
    if bytes.is_empty() {
        return Some(Headers::default());
    }
    let (count, rest) = split_length(bytes)?;
    let (mut lengths, mut texts) = rest.split_at_checked(count.checked_mul(8)?)?;
    let mut lines = Vec::new();
    while !lengths.is_empty() {
        let (name_length, after) = split_length(lengths)?;
        let (value_length, after) = split_length(after)?;
        lengths = after;
        let (name, after) = split_text(texts, name_length)?;
        let (value, after) = split_text(after, value_length)?;
        texts = after;
        lines.push((name.to_vec(), value.to_vec()));
    }
    Some(Headers::new(lines))
}

/// Nothing longer than 4 GiB fits into a proxy's memory, so the saturation never shows.
fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

fn split_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*length)).ok()?, rest))
}

fn split_text(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    let (text, rest) = bytes.split_at_checked(length)?;
    Some((text, rest.strip_prefix(&[0])?))
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;
    use crate::Field;

    #[test]
    fn pairs_have_the_layout_of_the_abi() {
        let bytes = encode([("a", "bc"), ("d", "")].into_iter());
        assert_eq!(bytes, b"\x02\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0a\0bc\0d\0\0");
        let headers = decode(&bytes).unwrap();
        assert_eq!(headers.get("a"), Field::One(b"bc"));
        assert_eq!(headers.get("d"), Field::One(b""));
        assert_eq!(decode(b"").unwrap(), Headers::default());
        assert_eq!(decode(&encode(std::iter::empty())).unwrap(), Headers::default());
    }

    #[test]
    fn any_bytes_are_values_and_names() {
        let headers = decode(b"\x01\0\0\0\x01\0\0\0\x03\0\0\0\xff\0\0\xfe\r\0").unwrap();
        assert_eq!(headers, Headers::new(vec![(vec![0xff], vec![0, 0xfe, b'\r'])]));
    }

    #[test]
    fn other_layouts_are_refused() {
        for bytes in [&b"\x01"[..], b"\x01\0\0\0", b"\xff\xff\xff\xff", b"\x01\0\0\0\x01\0\0\0\x01\0\0\0a\0b"] {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }
}
