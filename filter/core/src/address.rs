//! The client's address as a key: one text for each client, however the proxy spells it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// The client behind an address that the proxy gave, such as `198.51.100.7:0` or `[2001:db8::1]:443`. The port goes, and
/// IPv4 inside IPv6 becomes IPv4. None when it is no address (a unix socket).
#[must_use]
pub(crate) fn client(address: &[u8]) -> Option<IpAddr> {
    let text = without_zone(std::str::from_utf8(address).ok()?);
    let bare = || text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(&text).parse::<IpAddr>();
    let ip = text.parse::<SocketAddr>().map(|address| address.ip()).or_else(|_| bare()).ok()?;
    Some(ip.to_canonical())
}

/// The client's text in a key: an IPv4 address, or the network of an IPv6 address's first `ipv6_prefix` bits, because one
/// client usually has many IPv6 addresses to choose from.
#[must_use]
pub(crate) fn key(client: IpAddr, ipv6_prefix: u8) -> String {
    match client {
        IpAddr::V6(ip) if ipv6_prefix < 128 => {
            let network = ip.to_bits() & !u128::MAX.checked_shr(ipv6_prefix.into()).unwrap_or(0);
            format!("{}/{ipv6_prefix}", Ipv6Addr::from_bits(network))
        }
        IpAddr::V4(_) | IpAddr::V6(_) => client.to_string(),
    }
}

/// Zones (`%eth0`, RFC 4007 section 11) name an interface of this machine, not a client.
fn without_zone(text: &str) -> String {
    match text.split_once('%') {
        None => text.to_owned(),
        Some((address, zone)) => match zone.find(']') {
            None => address.to_owned(),
            Some(end) => format!("{address}{}", zone.get(end..).unwrap_or_default()),
        },
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(address: &str, expected: Option<&str>) {
        assert_eq!(client(address.as_bytes()).map(|ip| key(ip, 64)).as_deref(), expected, "{address:?}");
    }

    #[test]
    fn other_prefixes_make_other_clients() {
        let ip = client(b"[2001:db8:1:2:3:4:5:6]:1").unwrap();
        for (prefix, expected) in [
            (1, "::/1"),
            (48, "2001:db8:1::/48"),
            (56, "2001:db8:1::/56"),
            (127, "2001:db8:1:2:3:4:5:6/127"),
            (128, "2001:db8:1:2:3:4:5:6"),
        ] {
            assert_eq!(key(ip, prefix), expected);
        }
        assert_eq!(key(client(b"192.0.2.1").unwrap(), 8), "192.0.2.1");
    }

    #[test]
    fn the_port_is_not_part_of_the_client() {
        check("198.51.100.7:0", Some("198.51.100.7"));
        check("198.51.100.7:53220", Some("198.51.100.7"));
        check("198.51.100.7", Some("198.51.100.7"));
    }

    #[test]
    fn ipv6_is_taken_by_its_64() {
        check("[2001:db8::1]:443", Some("2001:db8::/64"));
        check("[2001:DB8:0:0:ffff::2]:1", Some("2001:db8::/64"));
        check("2001:db8:0:1::1", Some("2001:db8:0:1::/64"));
        check("[2001:db8::1]", Some("2001:db8::/64"));
        check("[fe80::1%eth0]:80", Some("fe80::/64"));
        check("fe80::1%2", Some("fe80::/64"));
    }

    #[test]
    fn ipv4_inside_ipv6_is_ipv4() {
        check("[::ffff:198.51.100.7]:0", Some("198.51.100.7"));
        check("::ffff:198.51.100.7", Some("198.51.100.7"));
    }

    #[test]
    fn what_is_no_address_is_nobody() {
        for address in ["", "/run/envoy.sock", "@abstract", "localhost:80", "1.2.3.4:99999", "[::1", "%", "%]"] {
            check(address, None);
        }
        assert_eq!(client(b"\xff\x00"), None);
    }
}
