//! Properties of the proxy as text. A property is bytes, and its type is known by its name alone.

use serde_json::Number;

/// The value of the property at `path` as text, where it is a number or a truth value; else as it is.
///
/// Numbers in metadata (claims of a token, metadata of a route) are doubles, those of the proxy itself whole numbers, all
/// of 8 bytes, little-endian. A text of 8 bytes is told from a number by having no control character. What an operator
/// or a token's issuer writes may be taken for the other all the same; then it is always taken so.
pub(crate) fn text(path: &[String], value: Vec<u8>) -> Vec<u8> {
    if is_metadata(path) {
        return match (value.as_slice(), <[u8; 8]>::try_from(value.as_slice())) {
            ([0], _) => b"false".to_vec(),
            ([1], _) => b"true".to_vec(),
            (_, Ok(bytes)) if !is_text(&bytes) => double(f64::from_le_bytes(bytes)).unwrap_or(value),
            _ => value,
        };
    }
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["connection", "mtls"] => {
            if value == [1] {
                b"true".to_vec()
            } else {
                b"false".to_vec()
            }
        }
        ["connection", "id"] | ["connection_id"] => match value.try_into() {
            Ok(bytes) => u64::from_le_bytes(bytes).to_string().into_bytes(),
            Err(value) => value,
        },
        ["source" | "destination" | "upstream", "port"]
        | ["request", "size" | "total_size" | "time"]
        | ["xds", "listener_direction"]
        | ["listener_direction"] => match value.try_into() {
            Ok(bytes) => i64::from_le_bytes(bytes).to_string().into_bytes(),
            Err(value) => value,
        },
        _ => value,
    }
}

fn is_metadata(path: &[String]) -> bool {
    path.iter().any(|name| name == "filter_metadata")
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// Whole numbers without a fraction, as whoever wrote them would.
fn double(number: f64) -> Option<Vec<u8>> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let text = if number.fract() == 0.0 && number.abs() <= EXACT {
        Number::from(number as i64)
    } else {
        Number::from_f64(number)?
    };
    Some(text.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(path: &str, value: &[u8], expected: &[u8]) {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        assert_eq!(text(&path, value.to_vec()), expected, "{path:?} {}", value.escape_ascii());
    }

    #[test]
    fn numbers_in_metadata_are_doubles() {
        let claim = "metadata.filter_metadata.jwt.payload.n";
        for (number, expected) in
            [(42.0, "42"), (0.0, "0"), (-1.0, "-1"), (2.5, "2.5"), (1.7e9, "1700000000"), (1e300, "1e+300")]
        {
            check(claim, &f64::to_le_bytes(number), expected.as_bytes());
        }
        check(claim, &f64::NAN.to_le_bytes(), &f64::NAN.to_le_bytes());
        check("xds.route_metadata.filter_metadata.sluicegate.cost", &5.0_f64.to_le_bytes(), b"5");
        check(claim, b"\x01", b"true");
        check(claim, b"\x00", b"false");
    }

    #[test]
    fn texts_stay_as_they_are() {
        let claim = "metadata.filter_metadata.jwt.payload.sub";
        for text in [&b"alice"[..], b"12345678", b"\xff", "ünïcöd".as_bytes(), b"", b"a"] {
            check(claim, text, text);
        }
        check("request.headers.x", &[1, 2, 3, 4, 5, 6, 7, 8], &[1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn numbers_of_the_proxy_are_whole() {
        check("source.port", &443_i64.to_le_bytes(), b"443");
        check("connection.id", &u64::MAX.to_le_bytes(), b"18446744073709551615");
        check("connection.mtls", &[1], b"true");
        check("connection.mtls", &[0], b"false");
        check("source.port", b"x", b"x");
    }
}
