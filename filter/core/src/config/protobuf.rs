//! A `google.protobuf.Struct` as bytes: what Envoy hands over when the configuration is written as YAML.
//!
//! Envoy's reference says that a Struct becomes JSON first; Envoy 1.40 passes the message itself. The encoding is
//! that of <https://protobuf.dev/programming-guides/encoding/>, the fields are those of `google/protobuf/struct.proto`.

use serde_json::{Map, Value};

/// Deeper nesting than any configuration has; bounds the recursion.
const MAX_DEPTH: u8 = 32;

/// The object that a Struct stands for; none when the bytes are no Struct.
pub(super) fn decode_struct(bytes: &[u8]) -> Option<Value> {
    object(bytes, MAX_DEPTH).map(Value::Object)
}

fn object(bytes: &[u8], depth: u8) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for field in Fields(bytes) {
        let (1, Payload::Bytes(entry)) = field? else { return None };
        let (mut key, mut content) = ("", Value::Null);
        for field in Fields(entry) {
            match field? {
                (1, Payload::Bytes(bytes)) => key = std::str::from_utf8(bytes).ok()?,
                (2, Payload::Bytes(bytes)) => content = value(bytes, depth.checked_sub(1)?)?,
                _ => return None,
            }
        }
        object.insert(key.to_owned(), content);
    }
    Some(object)
}

fn value(bytes: &[u8], depth: u8) -> Option<Value> {
    let mut decoded = Value::Null;
    for field in Fields(bytes) {
        decoded = match field? {
            (1, Payload::Varint(_)) => Value::Null,
            (2, Payload::Fixed64(bytes)) => Value::from(f64::from_le_bytes(bytes)),
            (3, Payload::Bytes(bytes)) => Value::from(std::str::from_utf8(bytes).ok()?),
            (4, Payload::Varint(number)) => Value::from(number != 0),
            (5, Payload::Bytes(bytes)) => Value::Object(object(bytes, depth)?),
            (6, Payload::Bytes(bytes)) => Value::Array(list(bytes, depth)?),
            _ => return None,
        };
    }
    Some(decoded)
}

fn list(bytes: &[u8], depth: u8) -> Option<Vec<Value>> {
    let item = |field: Option<(u64, Payload<'_>)>| match field? {
        (1, Payload::Bytes(bytes)) => value(bytes, depth.checked_sub(1)?),
        _ => None,
    };
    Fields(bytes).map(item).collect()
}

enum Payload<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
}

/// The fields of a message, (number, payload) each; ends with a none when the bytes are no message.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<(u64, Payload<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.split();
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn split(&mut self) -> Option<(u64, Payload<'a>)> {
        let tag = self.varint()?;
        let payload = match tag & 0b111 {
            0 => Payload::Varint(self.varint()?),
            1 => {
                let (bytes, rest) = self.0.split_first_chunk::<8>()?;
                self.0 = rest;
                Payload::Fixed64(*bytes)
            }
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Payload::Bytes(bytes)
            }
            _ => return None,
        };
        Some((tag >> 3, payload))
    }

    /// Seven bits a byte, least significant first, the eighth bit set on all but the last.
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if *byte < 0x80 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(bytes: &[u8], expected: Option<&str>) {
        let expected = expected.map(|json| serde_json::from_str::<Value>(json).unwrap());
        assert_eq!(decode_struct(bytes), expected, "{}", bytes.escape_ascii());
    }

    #[test]
    fn a_struct_is_an_object() {
        check(b"", Some("{}"));
        check(b"\x0a\x0c\x0a\x01a\x12\x07\x1a\x05hello", Some(r#"{"a":"hello"}"#));
        check(b"\x0a\x0e\x0a\x01n\x12\x09\x11\0\0\0\0\0\0\xf8\x3f", Some(r#"{"n":1.5}"#));
        check(b"\x0a\x07\x0a\x01t\x12\x02\x20\x01", Some(r#"{"t":true}"#));
        check(b"\x0a\x07\x0a\x01z\x12\x02\x08\x00", Some(r#"{"z":null}"#));
        check(b"\x0a\x0f\x0a\x01l\x12\x0a\x32\x08\x0a\x02\x20\x00\x0a\x02\x2a\x00", Some(r#"{"l":[false,{}]}"#));
    }

    #[test]
    fn other_bytes_are_no_struct() {
        for bytes in [
            &b"\x0a"[..],
            b"\x0a\x05\x0a\x01a",
            b"\n\n[",
            b"{\"a\":1}",
            b"\x0b",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\x04\x0a\x02\xff\xfe",
        ] {
            check(bytes, None);
        }
    }

    #[test]
    fn nesting_is_bounded() {
        let mut bytes = Vec::new();
        for _ in 0..1000 {
            // A struct value, in an entry without a key, in a struct.
            let mut outer = Vec::new();
            for tag in [0x2a, 0x12, 0x0a] {
                outer = std::iter::once(tag).chain(varint(bytes.len())).chain(bytes).collect();
                bytes = outer.clone();
            }
            bytes = outer;
        }
        check(&bytes, None);
    }

    fn varint(mut number: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }
}
