//! Encoded subjects as people write them back: what a key in the store, or the service's answer, shows.

use std::str::FromStr;

use super::{EncodedSubject, percent_encode};

/// Why a text is not an encoded subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an encoded subject: use it as peek or top show it, or as it stands in the store's key between the policy and the brace"
)]
pub struct EncodedSubjectError;

impl FromStr for EncodedSubject {
    type Err = EncodedSubjectError;

    /// Takes only what [`Subject::encode`](super::Subject::encode) makes: another text would name a subject that nobody
    /// ever is.
    fn from_str(text: &str) -> Result<Self, EncodedSubjectError> {
        let whole = text.strip_prefix("##").is_some_and(is_digest);
        if text.len() <= Self::MAX_BYTES && (whole || text.split('+').all(is_part)) {
            return Ok(Self(text.to_owned()));
        }
        Err(EncodedSubjectError)
    }
}

fn is_part(part: &str) -> bool {
    match part.strip_prefix('#') {
        Some(digits) => is_digest(digits),
        None => decode(part).is_some_and(|bytes| {
            let mut encoded = String::new();
            percent_encode(&bytes, &mut encoded);
            encoded == part
        }),
    }
}

fn is_digest(digits: &str) -> bool {
    digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn decode(part: &str) -> Option<Vec<u8>> {
    let mut bytes = part.bytes();
    let mut decoded = Vec::with_capacity(part.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{Part, Subject};

    #[test]
    fn only_encodings_are_taken() {
        let digest = "0123456789abcdef".repeat(2);
        for good in [
            "",
            "203.0.113.7",
            "a+b",
            "+",
            "%7Bx%7D",
            &format!("#{digest}"),
            &format!("a+#{digest}+"),
            &format!("##{digest}"),
        ] {
            assert_eq!(good.parse::<EncodedSubject>().map(|encoded| encoded.0), Ok(good.to_owned()));
        }
        let long = "x".repeat(129);
        let upper = format!("#{}", digest.to_uppercase());
        for bad in ["a b", "{", "}", "a:b", "%", "%7", "%7b", "%41", "#", "#0123", "##0123", "é", "a!", &upper, &long]
        {
            assert_eq!(bad.parse::<EncodedSubject>(), Err(EncodedSubjectError), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_encoding_is_read_back(parts in vec(vec(any::<u8>(), 0..40), 1..5), secret in any::<bool>()) {
            let mut parts: Vec<_> = parts.into_iter().map(Part::bytes).collect();
            if secret {
                parts.push(Part::secret(b"s", None));
            }
            let encoded = Subject::new(parts).unwrap().encode(None);
            prop_assert_eq!(encoded.as_str().parse::<EncodedSubject>(), Ok(encoded));
        }
    }
}
