//! From a name and the family that the user left to one address.

use std::net::{SocketAddr, ToSocketAddrs};

use linerate_core::record::{Failure, FailureCode, Family, Fault};

use crate::failure::words_of;

/// The first address of `host` in the wanted family, with `port`.
/// # Errors
/// When the name is not known, or has no address in that family.
pub(crate) fn resolve(
    host: &str,
    port: u16,
    family: Option<Family>,
) -> Result<SocketAddr, Failure> {
    let fail = |reason: String| {
        Failure::new(Fault::Usage, "resolve", host, reason).coded(FailureCode::Connect)
    };
    let advice = "check the spelling, or give an IP address";
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| fail(resolver_words(&error)).advise(advice))?
        .collect();
    addresses.iter().copied().find(|address| family_fits(family, *address)).ok_or_else(|| {
        let other = addresses.first().map_or_else(|| "nothing".to_owned(), |a| a.ip().to_string());
        fail(format!("no {} address, only {other}", family_name(family))).advise("drop -4 or -6")
    })
}

fn resolver_words(error: &std::io::Error) -> String {
    let text = words_of(error);
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}

const fn family_fits(family: Option<Family>, address: SocketAddr) -> bool {
    match family {
        None => true,
        Some(Family::V4) => address.is_ipv4(),
        Some(Family::V6) => address.is_ipv6(),
    }
}

const fn family_name(family: Option<Family>) -> &'static str {
    match family {
        Some(Family::V4) => "IPv4",
        Some(Family::V6) => "IPv6",
        None => "IP",
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn an_address_resolves_to_itself_in_its_family_only() {
        let v4 = resolve("127.0.0.1", 7, None).expect("an address");
        assert_eq!(v4.ip(), IpAddr::from([127, 0, 0, 1]));
        let failure = resolve("127.0.0.1", 7, Some(Family::V6)).expect_err("no IPv6 address");
        assert_eq!(failure.exit_code(), 2);
        let text = failure.to_string();
        assert_eq!(text, "resolve 127.0.0.1: no IPv6 address, only 127.0.0.1; drop -4 or -6");
    }

    #[test]
    fn an_unknown_name_is_a_usage_failure_of_one_line() {
        // RFC 6761 §6.4: `invalid.` never resolves.
        let failure = resolve("nobody.invalid", 7, None).expect_err("never resolves");
        let text = failure.to_string();
        assert!(text.starts_with("resolve nobody.invalid: "), "{text}");
        assert!(!text.contains('\n') && !text.contains("os error"), "{text}");
        assert_eq!(failure.exit_code(), 2);
    }
}
