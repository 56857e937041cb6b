//! Ranges of addresses: `10.0.0.0/8`, `2001:db8::/32`.

use std::net::{IpAddr, Ipv6Addr};

/// The addresses with the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    ip: IpAddr,
    prefix: u8,
}

/// Why a text is not a range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// Neither an address nor a range.
    #[error("an address or a range of addresses, such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32")]
    Form,
    /// Bits are set behind the prefix: one of the two is not what was meant.
    #[error("the range of these addresses begins with {0}: write it as {0}/{1}")]
    Bits(IpAddr, u8),
}

impl std::str::FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (ip, prefix) = text.split_once('/').map_or((text, None), |(ip, prefix)| (ip, Some(prefix)));
        let written: IpAddr = ip.parse().map_err(|_| NetworkError::Form)?;
        // IPv4 inside IPv6 is IPv4, as it is for clients.
        let (ip, skipped) = match (written, written.to_canonical()) {
            (IpAddr::V6(_), ip @ IpAddr::V4(_)) => (ip, 96),
            (_, ip) => (ip, 0),
        };
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let digits = |prefix: &&str| !prefix.is_empty() && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            None => most,
            Some(prefix) => Some(prefix)
                .filter(digits)
                .and_then(|prefix| prefix.parse::<u8>().ok()?.checked_sub(skipped))
                .filter(|prefix| *prefix <= most)
                .ok_or(NetworkError::Form)?,
        };
        let network = Self { ip: first(ip, prefix), prefix };
        if network.ip == ip { Ok(network) } else { Err(NetworkError::Bits(network.ip, prefix)) }
    }
}

impl Network {
    /// Whether this is one of the addresses; `ip` is canonical.
    pub(crate) fn contains(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == self.ip.is_ipv4() && first(ip, self.prefix) == self.ip
    }
}

/// The first address with the same first `prefix` bits.
fn first(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = !u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = !u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    use super::*;

    fn check(network: &str, ip: &str, expected: bool) {
        let parsed: Network = network.parse().unwrap();
        assert_eq!(parsed.contains(ip.parse().unwrap()), expected, "{network} {ip}");
    }

    #[test]
    fn a_range_is_the_same_first_bits() {
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.0", false);
        check("192.0.2.1", "192.0.2.1", true);
        check("192.0.2.1", "192.0.2.2", false);
        check("192.0.2.128/25", "192.0.2.127", false);
        check("0.0.0.0/0", "255.1.2.3", true);
        check("0.0.0.0/0", "::1", false);
        check("2001:db8::/32", "2001:db8:ffff::1", true);
        check("2001:db8::/32", "2001:db9::", false);
        check("::/0", "ffff::", true);
        check("::/0", "10.0.0.1", false);
        check("::1", "::1", true);
        check("::ffff:10.0.0.0/104", "10.1.2.3", true);
        check("::ffff:10.0.0.1", "10.0.0.1", true);
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for bad in [
            "",
            "/",
            "10",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "10.0.0.0/-1",
            "2001:db8::/129",
            "a/8",
            "::ffff:10.0.0.0/95",
            "[::1]",
            "10.0.0.0:80",
        ] {
            assert_eq!(bad.parse::<Network>(), Err(NetworkError::Form), "{bad}");
        }
        let error = "10.1.2.3/8".parse::<Network>().unwrap_err().to_string();
        assert_eq!(error, "the range of these addresses begins with 10.0.0.0: write it as 10.0.0.0/8");
    }
}
