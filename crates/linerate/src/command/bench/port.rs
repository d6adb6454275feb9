//! PORT of `linerate bench`: an interface that the user names, with the tester's address and the
//! device's on it.

use std::net::IpAddr;
use std::str::FromStr;

use linerate_core::record::BenchPort;

use super::words::{parse_value, settings};

/// Longest name of an interface (IFNAMSIZ less the final zero).
const NAME_BYTES_MAX: usize = 15;

/// A port of the command line: `eth1,address=198.18.0.2,gateway=198.18.0.1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortArg {
    /// Name of the interface.
    pub(super) interface: String,
    /// The tester's address on it.
    pub(super) address: Option<IpAddr>,
    /// The device's address on it.
    pub(super) gateway: Option<IpAddr>,
}

impl FromStr for PortArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = match text.split_once(',') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        // What the kernel refuses in names (dev_valid_name), and '=' of a forgotten name.
        let is_odd = |c: char| c.is_whitespace() || matches!(c, '/' | ':' | '=');
        if name.is_empty() || name.contains(is_odd) || matches!(name, "." | "..") {
            return Err("a port is INTERFACE[,address=ADDRESS][,gateway=ADDRESS]".to_owned());
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(format!("an interface has a name of {NAME_BYTES_MAX} bytes at most"));
        }
        let mut port = Self { interface: name.to_owned(), address: None, gateway: None };
        for (key, text) in settings(rest.unwrap_or(""), &["address", "gateway"])
            .or_else(|error| if rest.is_none() { Ok(Vec::new()) } else { Err(error) })?
        {
            let address = Some(parse_value(key, text)?);
            match key {
                "address" => port.address = address,
                _ => port.gateway = address,
            }
        }
        port.check_addresses()?;
        Ok(port)
    }
}

impl PortArg {
    fn check_addresses(&self) -> Result<(), String> {
        let (Some(address), Some(gateway)) = (self.address, self.gateway) else { return Ok(()) };
        if address.is_ipv4() != gateway.is_ipv4() {
            return Err("address and gateway are of one family".to_owned());
        }
        if address == gateway {
            return Err("address is the tester's own, gateway the device's: they differ".to_owned());
        }
        Ok(())
    }

    /// The port in a plan.
    pub(super) fn bench_port(&self) -> BenchPort {
        let text = |address: IpAddr| address.to_string();
        BenchPort {
            interface: self.interface.clone(),
            host: None,
            address: self.address.map(text),
            gateway: self.gateway.map(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_an_interface_with_or_without_addresses() {
        let port: PortArg = "eth1".parse().expect("a name");
        assert_eq!(
            port.bench_port(),
            BenchPort { interface: "eth1".to_owned(), ..BenchPort::default() }
        );
        let port: PortArg = "p0,gateway=198.18.0.1,address=198.18.0.2".parse().expect("both");
        assert_eq!(port.bench_port().address.as_deref(), Some("198.18.0.2"));
        assert_eq!(port.bench_port().gateway.as_deref(), Some("198.18.0.1"));
        // A VLAN interface has a dot in its name.
        assert!("eth0.100,address=2001:2::1".parse::<PortArg>().is_ok());
    }

    #[test]
    fn what_is_no_port_is_refused_in_one_line() {
        for (wrong, part) in [
            ("", "a port is INTERFACE"),
            ("a/b", "a port is INTERFACE"),
            ("gateway=198.18.0.1", "a port is INTERFACE"),
            ("0123456789abcdef", "15 bytes at most"),
            ("eth1,", "is none of address=, gateway="),
            ("eth1,address", "'address' has no value"),
            ("eth1,address=198.18.0", "address: "),
            ("eth1,mtu=1500", "'mtu=1500' is none of"),
            ("eth1,address=198.18.0.1,gateway=2001:2::1", "one family"),
            ("eth1,address=198.18.0.1,gateway=198.18.0.1", "they differ"),
        ] {
            let error = wrong.parse::<PortArg>().expect_err(wrong);
            assert!(error.contains(part) && !error.contains('\n'), "{wrong}: {error}");
        }
    }
}
