//! Subjects on the wire: text, or an array of parts.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer, de,
    ser::{self, SerializeSeq as _},
};

use super::{Part, Subject, SubjectError, hex_into};

/// The forms of a part on the wire.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a key part is text, {\"b64\": …}, {\"sha256\": …} or {\"secret\": …}")]
enum WirePart {
    Text(String),
    Bytes { b64: String },
    Digest { sha256: String },
    Secret { secret: String },
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Secret(secret) => match std::str::from_utf8(secret) {
                Ok(text) => WirePart::Secret { secret: text.to_owned() }.serialize(serializer),
                Err(_) => Err(ser::Error::custom(SubjectError::SecretBytes)),
            },
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => serializer.serialize_str(text),
                Err(_) => WirePart::Bytes { b64: BASE64.encode(bytes) }.serialize(serializer),
            },
            Self::Digest(digest) => {
                let mut sha256 = String::new();
                hex_into(digest.iter(), &mut sha256);
                WirePart::Digest { sha256 }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match WirePart::deserialize(deserializer)? {
            WirePart::Text(text) => Ok(Self::text(text)),
            WirePart::Bytes { b64 } => {
                BASE64.decode(b64).map(Self::bytes).map_err(|_| de::Error::custom(SubjectError::NotBase64))
            }
            WirePart::Digest { sha256 } => digest_from_hex(&sha256).map(Self::Digest).map_err(de::Error::custom),
            WirePart::Secret { secret } => Ok(Self::Secret(secret.into_bytes())),
        }
    }
}

impl Serialize for Subject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let [Part::Bytes(bytes)] = self.0.as_slice()
            && let Ok(text) = std::str::from_utf8(bytes)
        {
            return serializer.serialize_str(text);
        }
        let mut parts = serializer.serialize_seq(Some(self.0.len()))?;
        for part in &self.0 {
            parts.serialize_element(part)?;
        }
        parts.end()
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SubjectVisitor)
    }
}

struct SubjectVisitor;

impl<'de> de::Visitor<'de> for SubjectVisitor {
    type Value = Subject;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key: text, or an array of parts")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Subject, E> {
        Ok(Subject::text(text))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Subject, E> {
        Ok(Subject::text(text))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Subject, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            parts.push(part);
        }
        Subject::new(parts).map_err(de::Error::custom)
    }
}

fn digest_from_hex(text: &str) -> Result<[u8; 32], SubjectError> {
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(SubjectError::NotADigest);
    }
    let mut digest = [0; 32];
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| SubjectError::NotADigest)?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| SubjectError::NotADigest)?;
    }
    Ok(digest)
}
