//! The host that a request is for: one text for each host, however it is written.

use std::net::Ipv6Addr;

/// A host without port, in lower case, without the dot that ends a full name; an IPv6 address in brackets and in its one
/// form (RFC 5952).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host(Vec<u8>);

impl Host {
    /// The host of an `:authority`, which should not have, but may, a user before it.
    pub(crate) fn of(authority: &[u8]) -> Self {
        let host = authority.rsplit(|byte| *byte == b'@').next().unwrap_or_default().trim_ascii();
        if let Some(address) = ipv6(host) {
            return Self(format!("[{address}]").into_bytes());
        }
        let port = |port: &[u8]| port.iter().all(u8::is_ascii_digit);
        let host = match host.iter().rposition(|byte| *byte == b':').and_then(|at| host.split_at_checked(at)) {
            Some((name, [_, digits @ ..])) if port(digits) && (!host.starts_with(b"[") || name.ends_with(b"]")) => name,
            _ => host,
        };
        Self(host.strip_suffix(b".").unwrap_or(host).to_ascii_lowercase())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The address of `::1`, `[::1]` and `[::1]:443`.
fn ipv6(host: &[u8]) -> Option<Ipv6Addr> {
    let text = std::str::from_utf8(host).ok()?;
    let address = match text.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?.0,
        None => text,
    };
    address.parse().ok()
}

/// Which hosts a rule is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostMatch {
    /// This one, in lower case and without port.
    Exact(String),
    /// Every host that ends so, with something before it: `.example.com`.
    Below(String),
}

/// Why a text is no pattern for hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a host such as example.com or *.example.com, without port{hint}")]
pub struct HostMatchError {
    hint: String,
}

impl std::str::FromStr for HostMatch {
    type Err = HostMatchError;

    fn from_str(text: &str) -> Result<Self, HostMatchError> {
        let (below, name) = match text.strip_prefix('*') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let normal = String::from_utf8(Host::of(name.as_bytes()).0).unwrap_or_default();
        let printable = normal.bytes().all(|byte| byte.is_ascii_graphic() && !b"*/".contains(&byte));
        let name_follows = name.strip_prefix('.').is_some_and(|name| !name.is_empty());
        if normal.is_empty() || !printable || below && !name_follows {
            return Err(HostMatchError { hint: String::new() });
        }
        if normal != name {
            return Err(HostMatchError { hint: format!(": write it as {}{normal}", if below { "*" } else { "" }) });
        }
        Ok(if below { Self::Below(normal) } else { Self::Exact(normal) })
    }
}

impl HostMatch {
    pub(crate) fn matches(&self, host: &Host) -> bool {
        match self {
            Self::Exact(name) => name.as_bytes() == host.0,
            Self::Below(suffix) => host.0.strip_suffix(suffix.as_bytes()).is_some_and(|before| !before.is_empty()),
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    #[test]
    fn a_host_has_one_form() {
        for (authority, expected) in [
            ("example.com", "example.com"),
            ("Example.COM:8080", "example.com"),
            ("example.com.", "example.com"),
            ("example.com.:80", "example.com"),
            ("example.com:", "example.com"),
            ("user:secret@example.com:80", "example.com"),
            ("[::1]", "[::1]"),
            ("[0:0:0::1]:443", "[::1]"),
            ("[2001:DB8::1]:443", "[2001:db8::1]"),
            ("2001:db8::1", "[2001:db8::1]"),
            ("192.0.2.1:80", "192.0.2.1"),
            ("example.com:http", "example.com:http"),
            ("[::1", "[::1"),
            ("", ""),
            (":80", ""),
            ("@", ""),
        ] {
            assert_eq!(Host::of(authority.as_bytes()).as_bytes(), expected.as_bytes(), "{authority}");
        }
        assert_eq!(Host::of(b"\xffA:1").as_bytes(), b"\xffa");
    }

    #[test]
    fn a_star_is_at_least_one_label() {
        let check = |pattern: &str, host: &str, expected| {
            assert_eq!(
                pattern.parse::<HostMatch>().unwrap().matches(&Host::of(host.as_bytes())),
                expected,
                "{pattern} {host}"
            );
        };
        check("example.com", "EXAMPLE.com:80", true);
        check("example.com", "www.example.com", false);
        check("*.example.com", "www.example.com", true);
        check("*.example.com", "a.b.example.com.:1", true);
        check("*.example.com", "example.com", false);
        check("*.example.com", ".example.com", false);
        check("*.example.com", "badexample.com", false);
        check("[2001:db8::1]", "[2001:db8:0::1]:443", true);
    }

    #[test]
    fn what_no_host_could_match_is_refused() {
        for bad in ["", "*", "*.", "*example.com", "a*.com", "*.*.com", "a b", "é.fr", "http://a", "example.com/"] {
            assert!(bad.parse::<HostMatch>().is_err(), "{bad}");
        }
        for (bad, good) in [("Example.com", "example.com"), ("*.example.com:80", "*.example.com"), ("::1", "[::1]")] {
            let error = bad.parse::<HostMatch>().unwrap_err().to_string();
            assert!(error.ends_with(&format!(": write it as {good}")), "{error}");
        }
    }
}
