//! What a rule can see of a request. Everything a client sends is bytes: only some of it is text.

/// The request as the proxy shows it.
pub trait Request {
    /// Every header in order, pseudo-headers included.
    fn headers(&self) -> &Headers;

    /// A property of the request or its connection, such as `["source", "address"]`; none when the proxy doesn't know
    /// it. Read only when a rule needs it.
    fn property(&self, path: &[&str]) -> Option<Vec<u8>>;
}

/// Header lines in the order they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(Vec<u8>, Vec<u8>)>);

/// What a lookup by name found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field<'a> {
    /// No such header.
    Absent,
    /// One line with this value.
    One(&'a [u8]),
    /// Several lines: which of them counts, upstreams decide differently.
    Several,
}

impl<'a> Field<'a> {
    /// The value when there is exactly one.
    #[must_use]
    pub fn single(self) -> Option<&'a [u8]> {
        match self {
            Self::One(value) => Some(value),
            Self::Absent | Self::Several => None,
        }
    }
}

impl Headers {
    /// The header lines given, as (name, value).
    #[must_use]
    pub const fn new(lines: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        Self(lines)
    }

    /// What was sent under a name, in any case. Blanks around the value are not part of it (RFC 9110 section 5.5), so
    /// they don't make a new value.
    #[must_use]
    pub fn get(&self, name: &str) -> Field<'_> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (None, _) => Field::Absent,
            (Some(value), None) => Field::One(value),
            (Some(_), Some(_)) => Field::Several,
        }
    }

    /// Every value sent under a name, in order, as [`get`](Self::get) would show it.
    pub(crate) fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        let lines = self.0.iter().filter(|(sent, _)| sent.eq_ignore_ascii_case(name.as_bytes()));
        lines.map(|(_, value)| value.trim_ascii())
    }

    /// The header lines in order, as (name, value).
    pub fn lines(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_slice(), value.as_slice()))
    }

    /// The names in order, repeated ones each time.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.lines().map(|(name, _)| name)
    }
}

/// Whether the request is gRPC, by its content type (gRPC over HTTP/2, "Content-Type"). The proxy then answers in
/// trailers, with a status of gRPC's own.
#[must_use]
pub(crate) fn is_grpc(headers: &Headers) -> bool {
    let content_type = headers.get("content-type").single().unwrap_or_default();
    content_type.strip_prefix(b"application/grpc").is_some_and(|rest| matches!(rest, [] | [b'+' | b';', ..]))
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn headers(lines: &[(&str, &[u8])]) -> Headers {
        Headers::new(lines.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect())
    }

    #[test]
    fn a_header_is_absent_once_or_several() {
        let headers = headers(&[("x-a", b" \xff\t"), ("x-b", b"1"), ("X-B", b"1"), ("x-c", b"")]);
        assert_eq!(headers.get("x-a"), Field::One(b"\xff"));
        assert_eq!(headers.get("x-b"), Field::Several);
        assert_eq!(headers.get("x-c"), Field::One(b""));
        assert_eq!(headers.get("x-d"), Field::Absent);
    }

    #[test]
    fn grpc_is_known_by_its_content_type() {
        let check = |value: &str, expected| {
            assert_eq!(is_grpc(&headers(&[("content-type", value.as_bytes())])), expected, "{value}");
        };
        check("application/grpc", true);
        check("application/grpc+proto", true);
        check("application/grpc; charset=utf-8", true);
        check("application/grpc-web", false);
        check("application/json", false);
        check("", false);
    }
}
