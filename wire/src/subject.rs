//! Who is limited: the parts of a subject, and their one encoding as a key.

mod encoded;
mod form;
#[cfg(feature = "openapi")]
mod schema;

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

pub use encoded::EncodedSubjectError;

/// One part of a subject.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Part {
    /// A secret in clear, from a caller that leaves the digesting to the service. A proxy never sends one.
    Secret(Vec<u8>),
    /// At most [`Part::MAX_BYTES`] of any bytes, made by [`Part::bytes`] or [`Part::text`]. Text is its UTF-8 bytes, so
    /// `"a"` and `{"b64":"YQ=="}` are one subject.
    Bytes(Vec<u8>),
    /// A SHA-256 digest (HMAC-SHA-256 with a pepper) of a secret that must not travel in clear.
    Digest([u8; 32]),
}

impl Part {
    /// A part that the request did not have. No value has this digest, so the bucket of the requests without a value
    /// is nobody else's.
    pub const MISSING: Self = Self::Digest([0; 32]);

    /// The longest value, in bytes, that travels as it is. A longer one is digested where it is first seen, so that no
    /// request makes a question too large, and so that everyone arrives at the same key.
    pub const MAX_BYTES: usize = 256;

    /// A part of any bytes.
    #[must_use]
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        if bytes.len() <= Self::MAX_BYTES {
            return Self::Bytes(bytes);
        }
        // Keyed, so that it is never the plain digest of a secret.
        match Pepper::new(b"sluicegate long part") {
            Ok(domain) => Self::Digest(domain.digest(&bytes)),
            Err(_) => Self::Bytes(bytes),
        }
    }

    /// A part of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::bytes(text.into())
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
    fn encode_into(&self, pepper: Option<&Pepper>, encoded: &mut String) {
        match self {
            Self::Secret(secret) => Self::secret(secret, pepper).encode_into(pepper, encoded),
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
        if matches!(self, Self::Secret(_)) {
            return formatter.write_str("***");
        }
        let mut encoded = String::new();
        self.encode_into(None, &mut encoded);
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
    /// alphabet of a part, and no part begins with `##`. A secret in clear is digested with the deployment's pepper.
    #[must_use]
    pub fn encode(&self, pepper: Option<&Pepper>) -> EncodedSubject {
        let mut encoded = String::new();
        for (index, part) in self.0.iter().enumerate() {
            if index > 0 {
                encoded.push('+');
            }
            part.encode_into(pepper, &mut encoded);
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
    /// A secret in clear travels as text.
    #[error("a secret that is not UTF-8 is sent as its sha256")]
    SecretBytes,
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

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn check(json: &str, expected: &str) {
        let subject: Subject = serde_json::from_str(json).unwrap();
        assert_eq!(subject.encode(None).as_str(), expected, "{json}");
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
        assert_eq!(plain.encode(None).as_str(), "#ba7816bf8f01cfea414140de5dae2223");
        let pepper = Pepper::new(b"Jefe").unwrap();
        let peppered = Subject(vec![Part::secret(b"what do ya want for nothing?", Some(&pepper))]);
        assert_eq!(peppered.encode(None).as_str(), "#5bdcc146bf60754e6a042426089575c7");
        assert!(!format!("{pepper:?}").contains("Jefe"));
        // The same secret, left to the service to digest.
        let left: Subject = serde_json::from_str(r#"[{"secret":"what do ya want for nothing?"}]"#).unwrap();
        assert_eq!(left.encode(Some(&pepper)), peppered.encode(None));
        assert!(!format!("{left:?}").contains("ya"));
    }

    #[test]
    fn long_subjects_are_digested_whole_and_never_meet_a_digested_part() {
        let long = "x".repeat(129);
        let whole = Subject::text(long.clone()).encode(None);
        assert_eq!(whole.as_str().len(), 34);
        assert!(whole.as_str().starts_with("##"));
        // The same preimage as a secret would give the same digits, after one `#` only.
        assert_ne!(Subject(vec![Part::secret(long.as_bytes(), None)]).encode(None), whole);
        assert_eq!(Subject::text("x".repeat(128)).encode(None).as_str().len(), 128);
        assert_eq!(Subject::text("\0".repeat(256)).encode(None).as_str().len(), 34);
    }

    #[test]
    fn long_parts_are_digested_where_they_are_seen_and_never_meet_a_secret() {
        let long = "x".repeat(65_536);
        let seen_here = Subject::text(long.clone()).encode(None);
        let sent: Subject =
            serde_json::from_str(&serde_json::to_string(&Subject::text(long.clone())).unwrap()).unwrap();
        assert_eq!(sent.encode(None), seen_here);
        assert_eq!(serde_json::from_str::<Subject>(&format!("{long:?}")).unwrap().encode(None), seen_here);
        assert_ne!(Subject(vec![Part::secret(long.as_bytes(), None)]).encode(None), seen_here);
        assert_ne!(Subject::text(format!("{long}y")).encode(None), seen_here);
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
            prop_assert_eq!(left == right, left.encode(None) == right.encode(None));
        }

        #[test]
        fn an_encoding_is_safe_inside_a_hash_tag(parts in vec(part(), 1..6)) {
            let encoded = Subject(parts).encode(None);
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
