//! JSON as a `google.protobuf.Struct`, as Envoy hands a configuration over that was written in YAML.

use serde_json::{Map, Value};

/// The same with every number as a double: a Struct has no others.
#[must_use]
pub fn with_doubles(object: Map<String, Value>) -> Map<String, Value> {
    object.into_iter().map(|(name, content)| (name, doubles(content))).collect()
}

fn doubles(content: Value) -> Value {
    match content {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(items) => items.into_iter().map(doubles).collect(),
        Value::Object(object) => Value::Object(with_doubles(object)),
        other => other,
    }
}

/// The message of an object.
#[must_use]
pub fn encode(object: &Map<String, Value>) -> Vec<u8> {
    let mut message = Vec::new();
    for (name, content) in object {
        let mut entry = Vec::new();
        bytes(&mut entry, 1, name.as_bytes());
        bytes(&mut entry, 2, &value(content));
        bytes(&mut message, 1, &entry);
    }
    message
}

fn value(content: &Value) -> Vec<u8> {
    let mut message = Vec::new();
    match content {
        Value::Null => message.extend([0x08, 0]),
        Value::Bool(truth) => message.extend([0x20, u8::from(*truth)]),
        Value::Number(number) => {
            message.push(0x11);
            message.extend(number.as_f64().unwrap_or_default().to_le_bytes());
        }
        Value::String(text) => bytes(&mut message, 3, text.as_bytes()),
        Value::Object(object) => bytes(&mut message, 5, &encode(object)),
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items {
                bytes(&mut list, 1, &value(item));
            }
            bytes(&mut message, 6, &list);
        }
    }
    message
}

/// A field with a length before it.
fn bytes(message: &mut Vec<u8>, field: u8, content: &[u8]) {
    message.push(field << 3 | 2);
    let mut length = content.len();
    while length >= 0x80 {
        message.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    message.push(length as u8);
    message.extend_from_slice(content);
}
