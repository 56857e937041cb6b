//! Who is limited: the parts of a subject, and their one encoding as a key.

use std::fmt::{self, Write as _};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser::SerializeSeq as _};
use sha2::{Digest as _, Sha256};

/// One part of a subject.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// Any bytes; text is its UTF-8 bytes, so `"a"` and `{"b64":"YQ=="}` are one subject.
    Bytes(Vec<u8>),
    /// A SHA-256 digest (HMAC-SHA-256 with a pepper) of a secret that must not travel in clear.
    Digest([u8; 32]),
}

impl Part {
    /// A part that the request did not have. No value has this digest, so the bucket of the requests without a value
    /// is nobody else's.
    pub const MISSING: Self = Self::Digest([0; 32]);

    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Bytes(text.into().into_bytes())
    }

    /// The digest of a secret: SHA-256, or HMAC-SHA-256 (RFC 2104) with a pepper.
    #[must_use]
    pub fn secret(secret: &[u8], pepper: Option<&Pepper>) -> Self {
        Self::Digest(match pepper {
            None => Sha256::digest(secret).into(),
            Some(pepper) => pepper.digest(secret),
        })
    }

    /// Appends the part's encoding: percent-encoded bytes, or `#` and the first 32 hex digits of a digest.
    fn encode_into(&self, encoded: &mut String) {
        match self {
            Self::Bytes(bytes) => percent_encode(bytes, encoded),
            Self::Digest(digest) => {
                encoded.push('#');
                hex_into(digest.iter().take(16), encoded);
            }
        }
    }
}

/// Parts may be user names or addresses: logs show what a key shows, never more.
impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut encoded = String::new();
        self.encode_into(&mut encoded);
        formatter.write_str(&encoded)
    }
}

/// A secret shared by filter and service that turns digests of guessable secrets into digests nobody can guess.
#[derive(Clone)]
pub struct Pepper(Hmac<Sha256>);

impl Pepper {
    /// A pepper of any length but zero.
    pub fn new(key: &[u8]) -> Result<Self, SubjectError> {
        if key.is_empty() {
            return Err(SubjectError::EmptyPepper);
        }
        Hmac::new_from_slice(key).map(Self).map_err(|_| SubjectError::EmptyPepper)
    }

    fn digest(&self, secret: &[u8]) -> [u8; 32] {
        let mut mac = self.0.clone();
        mac.update(secret);
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Pepper {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Pepper(..)")
    }
}

/// Who is limited: one or more parts. On the wire a string (one text part) or an array of parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Subject(Vec<Part>);

impl Subject {
    /// A subject of these parts, refused when there are none.
    pub fn new(parts: Vec<Part>) -> Result<Self, SubjectError> {
        if parts.is_empty() {
            return Err(SubjectError::NoParts);
        }
        Ok(Self(parts))
    }

    /// A subject of one text part.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self(vec![Part::text(text)])
    }

    /// The parts, at least one.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0
    }

    /// The subject as it stands in a key: parts joined with `+`; digested whole (`##` and 32 hex digits) when longer
    /// than [`EncodedSubject::MAX_BYTES`]. Two different subjects never share an encoding: `+` and `#` are outside the
    /// alphabet of a part, and no part begins with `##`.
    #[must_use]
    pub fn encode(&self) -> EncodedSubject {
        let mut encoded = String::new();
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                encoded.push('+');
            }
            part.encode_into(&mut encoded);
        }
        if encoded.len() > EncodedSubject::MAX_BYTES {
            let digest = Sha256::digest(encoded.as_bytes());
            encoded.clear();
            encoded.push_str("##");
            hex_into(digest.iter().take(16), &mut encoded);
        }
        EncodedSubject(encoded)
    }
}

/// A subject as it stands in a key: printable ASCII without braces, colons or blanks, at most 128 bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EncodedSubject(String);

impl EncodedSubject {
    /// The longest encoding, in bytes; a longer one is digested whole.
    pub const MAX_BYTES: usize = 128;

    /// The encoding as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EncodedSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Why something is not a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubjectError {
    /// An empty array of parts.
    #[error("a key has at least one part")]
    NoParts,
    /// `sha256` is not 64 hex digits.
    #[error("sha256 is 64 hex digits")]
    NotADigest,
    /// `b64` is not standard base64 with padding.
    #[error("b64 is standard base64 with padding")]
    NotBase64,
    /// A pepper without bytes protects nothing.
    #[error("a pepper is not empty")]
    EmptyPepper,
}

fn percent_encode(bytes: &[u8], encoded: &mut String) {
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'~' | b'@' | b'-') {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String can't fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
}

fn hex_into<'a>(bytes: impl Iterator<Item = &'a u8>, encoded: &mut String) {
    for byte in bytes {
        let _ = write!(encoded, "{byte:02x}");
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

/// The forms of a part on the wire.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a key part is text, {\"b64\": …} or {\"sha256\": …}")]
enum WirePart {
    Text(String),
    Bytes { b64: String },
    Digest { sha256: String },
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
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
                BASE64.decode(b64).map(Self::Bytes).map_err(|_| de::Error::custom(SubjectError::NotBase64))
            }
            WirePart::Digest { sha256 } => digest_from_hex(&sha256).map(Self::Digest).map_err(de::Error::custom),
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

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn check(json: &str, expected: &str) {
        let subject: Subject = serde_json::from_str(json).unwrap();
        assert_eq!(subject.encode().as_str(), expected, "{json}");
    }

    #[test]
    fn parts_are_percent_encoded_and_joined() {
        check(r#""203.0.113.7""#, "203.0.113.7");
        check(r#""2001:db8::/64""#, "2001%3Adb8%3A%3A%2F64");
        check(r#""""#, "");
        check(r#"["",""]"#, "+");
        check(r#"["a","b"]"#, "a+b");
        check(r#""a+b""#, "a%2Bb");
        check(r#""}x{u1}""#, "%7Dx%7Bu1%7D");
        check(r#""a\u0000\r\nb""#, "a%00%0D%0Ab");
        check(r#""é""#, "%C3%A9");
        check(r#"[{"b64":"/wA="}]"#, "%FF%00");
        check(r#"[{"b64":"YQ=="}]"#, "a");
    }

    #[test]
    fn digests_show_their_first_half() {
        let hex = "0123456789abcdefFEDCBA98765432100123456789abcdef0123456789abcdef";
        check(&format!(r#"["u",{{"sha256":"{hex}"}}]"#), "u+#0123456789abcdeffedcba9876543210");
    }

    #[test]
    fn secrets_are_digested_with_and_without_pepper() {
        // SHA-256 of "abc" (FIPS 180-4) and RFC 4231 test case 2.
        let plain = Subject(vec![Part::secret(b"abc", None)]);
        assert_eq!(plain.encode().as_str(), "#ba7816bf8f01cfea414140de5dae2223");
        let pepper = Pepper::new(b"Jefe").unwrap();
        let peppered = Subject(vec![Part::secret(b"what do ya want for nothing?", Some(&pepper))]);
        assert_eq!(peppered.encode().as_str(), "#5bdcc146bf60754e6a042426089575c7");
        assert!(!format!("{pepper:?}").contains("Jefe"));
    }

    #[test]
    fn long_subjects_are_digested_whole_and_never_meet_a_digested_part() {
        let long = "x".repeat(129);
        let whole = Subject::text(long.clone()).encode();
        assert_eq!(whole.as_str().len(), 34);
        assert!(whole.as_str().starts_with("##"));
        // The same preimage as a secret would give the same digits, after one `#` only.
        assert_ne!(Subject(vec![Part::secret(long.as_bytes(), None)]).encode(), whole);
        assert_eq!(Subject::text("x".repeat(128)).encode().as_str().len(), 128);
        assert_eq!(Subject::text("\0".repeat(65_536)).encode().as_str().len(), 34);
    }

    #[test]
    fn what_is_not_a_subject_is_refused_with_its_reason() {
        for (json, reason) in [
            ("[]", "at least one part"),
            (r#"[{"sha256":"00"}]"#, "64 hex digits"),
            (r#"[{"b64":"?"}]"#, "base64"),
            ("[1]", "a key part is text"),
            ("1", "a key: text, or an array of parts"),
            ("null", "a key: text, or an array of parts"),
        ] {
            let error = serde_json::from_str::<Subject>(json).unwrap_err().to_string();
            assert!(error.contains(reason), "{json}: {error}");
        }
    }

    fn part() -> impl Strategy<Value = Part> {
        prop_oneof![
            4 => vec(any::<u8>(), 0..40).prop_map(Part::Bytes),
            2 => "[{}+#!:%a]{0,4}".prop_map(Part::text),
            1 => any::<[u8; 32]>().prop_map(Part::Digest),
        ]
    }

    proptest! {
        #[test]
        fn different_subjects_never_share_a_key(left in vec(part(), 1..4), right in vec(part(), 1..4)) {
            let (left, right) = (Subject(left), Subject(right));
            prop_assert_eq!(left == right, left.encode() == right.encode());
        }

        #[test]
        fn an_encoding_is_safe_inside_a_hash_tag(parts in vec(part(), 1..6)) {
            let encoded = Subject(parts).encode();
            prop_assert!(encoded.as_str().len() <= EncodedSubject::MAX_BYTES);
            let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"._~@-%+#".contains(&byte);
            prop_assert!(encoded.as_str().bytes().all(safe));
        }

        #[test]
        fn the_wire_form_keeps_the_subject(parts in vec(part(), 1..4)) {
            let subject = Subject(parts);
            let json = serde_json::to_string(&subject).unwrap();
            prop_assert_eq!(serde_json::from_str::<Subject>(&json).unwrap(), subject);
        }
    }
}
