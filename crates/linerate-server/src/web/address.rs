//! Addresses of clients: what of them is kept, and where they are.

use std::net::IpAddr;

use linerate_core::record::Record;
use serde_json::Value;

/// The network of an address, so much of it that it is no person's: /24 of IPv4, /48 of IPv6.
pub(crate) fn network_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            format!("{}/48", std::net::Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    }
}

/// Takes the client's address out of a record, wherever it stands in it: its network stays, which
/// is enough to find results again. The page promises it to every visitor, so private addresses go,
/// too.
pub(crate) fn without_address(record: &mut Record, address: IpAddr) {
    let address = address.to_canonical();
    let Ok(mut document) = linerate_core::tree::to_value(&*record) else { return };
    if mask_address(&mut document, &address.to_string(), &network_of(address)) {
        // A record with another text in a text is a record.
        let masked = Record::from_json(&document.to_string());
        *record = masked.expect("only texts have changed");
    }
}

/// Replaces an address in every text; whether there was any.
fn mask_address(value: &mut Value, whole: &str, network: &str) -> bool {
    match value {
        Value::String(text) => {
            let masked = masked(text, whole, network);
            let is_changed = masked != *text;
            *text = masked;
            is_changed
        }
        Value::Array(all) => {
            all.iter_mut().fold(false, |any, it| mask_address(it, whole, network) | any)
        }
        Value::Object(all) => {
            all.values_mut().fold(false, |any, it| mask_address(it, whole, network) | any)
        }
        _ => false,
    }
}

/// A text with an address replaced, where it is not a part of a longer one.
fn masked(text: &str, whole: &str, network: &str) -> String {
    let is_v6 = whole.contains(':');
    let goes_on = |c: char| match is_v6 {
        true => c.is_ascii_hexdigit() || c == ':',
        false => c.is_ascii_digit() || c == '.',
    };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(whole) {
        let (before, after) = (&rest[..at], &rest[at + whole.len()..]);
        // A full stop ends a sentence, a digit behind it does not.
        let ends = match after.strip_prefix('.') {
            Some(more) if !is_v6 => !more.starts_with(|c: char| c.is_ascii_digit()),
            _ => !after.starts_with(goes_on),
        };
        let begins = !before.ends_with(goes_on);
        out.push_str(before);
        out.push_str(if begins && ends { network } else { whole });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_goes_wherever_it_stands_and_longer_ones_stay() {
        let v4 = |text: &str| masked(text, "10.77.1.1", "10.77.1.0/24");
        assert_eq!(v4("10.77.1.1:443 and 10.77.1.1."), "10.77.1.0/24:443 and 10.77.1.0/24.");
        assert_eq!(v4("[::ffff:10.77.1.1]:80"), "[::ffff:10.77.1.0/24]:80");
        assert_eq!(
            v4("10.77.1.10, 110.77.1.1, 10.77.1.1.2"),
            "10.77.1.10, 110.77.1.1, 10.77.1.1.2"
        );
        let v6 = |text: &str| masked(text, "fd00::1", "fd00::/48");
        assert_eq!(v6("[fd00::1]:80, fd00::12, a:fd00::1"), "[fd00::/48]:80, fd00::12, a:fd00::1");
    }

    #[test]
    fn an_address_is_told_by_its_network_alone() {
        let of = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(of("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
        assert_eq!(of("::ffff:192.0.2.77"), "192.0.2.0/24");
    }
}
