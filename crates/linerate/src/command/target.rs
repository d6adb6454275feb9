//! The other end as a command names it: `HOST`, `HOST:PORT`, `[2001:db8::1]:PORT`, `2001:db8::1`,
//! and the address of a server's page as a browser has it, `http://HOST:PORT/`.

use std::net::SocketAddr;
use std::str::FromStr;

use linerate_core::record::{Failure, Fault};

/// A host, and a port where one is attached to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostAndPort {
    pub(crate) host: String,
    port: Option<u16>,
}

impl FromStr for HostAndPort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let page = ["http://", "https://"].iter().find_map(|prefix| text.strip_prefix(prefix));
        let text = page.map_or(text, |url| url.split(['/', '?', '#']).next().unwrap_or(url));
        let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((host, ""))) => (host, None),
            Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':').ok_or(BRACKETS)?)),
            Some(None) => return Err(BRACKETS.to_owned()),
            // More than one colon is an IPv6 address, which has a port in brackets only.
            None if text.matches(':').count() > 1 => (text, None),
            None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
        };
        let number = |port: &str| {
            port.parse::<u16>()
                .ok()
                .filter(|port| *port > 0)
                .ok_or_else(|| format!("{port:?} is no port; HOST:PORT has one of 1 to 65535"))
        };
        if host.is_empty() {
            return Err("a host has a name or an address".to_owned());
        }
        Ok(Self { host: host.to_owned(), port: port.map(number).transpose()? })
    }
}

/// The port of a flag: a host has none of number 0.
pub(super) fn parse_port(text: &str) -> Result<u16, String> {
    let port = text.parse().ok().filter(|port| *port > 0);
    port.ok_or_else(|| "a port is 1 to 65535".to_owned())
}

impl From<SocketAddr> for HostAndPort {
    fn from(address: SocketAddr) -> Self {
        Self { host: address.ip().to_string(), port: Some(address.port()) }
    }
}

const BRACKETS: &str = "an IPv6 address with a port is [ADDRESS]:PORT";

impl HostAndPort {
    /// The port: of the flag, of the address, else the usual one.
    /// # Errors
    /// When two are given that differ.
    pub(crate) fn choose_port(&self, flag: Option<u16>, usual: u16) -> Result<u16, Failure> {
        match (flag, self.port) {
            (Some(flag), Some(here)) if flag != here => {
                let reason = format!("-p {flag} names another port");
                let object = format!("{}:{here}", self.host);
                Err(Failure::new(Fault::Usage, "use", object, reason).advise("give one of them"))
            }
            (flag, here) => Ok(flag.or(here).unwrap_or(usual)),
        }
    }

    /// Refuses a port where the protocol has none.
    /// # Errors
    /// When one is attached.
    pub(crate) fn without_port(&self, protocol: &str) -> Result<(), Failure> {
        let Some(port) = self.port else { return Ok(()) };
        let object = format!("{}:{port}", self.host);
        let failure = Failure::new(Fault::Usage, "use", object, format!("{protocol} has no ports"));
        Err(failure.advise("omit the port, or ping `linerate serve` with --udp"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_attached_to_a_host() {
        let of = |text: &str| text.parse::<HostAndPort>().map(|target| (target.host, target.port));
        let is = |host: &str, port| Ok((host.to_owned(), port));
        assert_eq!(of("host"), is("host", None));
        assert_eq!(of("host:5210"), is("host", Some(5210)));
        assert_eq!(of("192.0.2.1:1"), is("192.0.2.1", Some(1)));
        assert_eq!(of("2001:db8::1"), is("2001:db8::1", None));
        assert_eq!(of("fe80::1%eth0"), is("fe80::1%eth0", None));
        assert_eq!(of("http://host:5210/"), is("host", Some(5210)));
        assert_eq!(of("https://host/#results"), is("host", None));
        assert_eq!(of("http://[2001:db8::1]:5210"), is("2001:db8::1", Some(5210)));
        assert_eq!(of("[2001:db8::1]"), is("2001:db8::1", None));
        assert_eq!(of("[2001:db8::1]:65535"), is("2001:db8::1", Some(65535)));
        for wrong in
            ["host:", "host:x", "host:0", "host:65536", "[::1", "[::1]5210", ":5210", "", "http://"]
        {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_ports_that_differ_are_refused() {
        let port = |text: &str, flag| {
            text.parse::<HostAndPort>().expect("a target").choose_port(flag, 5210)
        };
        assert_eq!(port("h", None), Ok(5210));
        assert_eq!(port("h:7", None), Ok(7));
        assert_eq!(port("h", Some(8)), Ok(8));
        assert_eq!(port("h:8", Some(8)), Ok(8));
        let said = port("h:7", Some(8)).expect_err("two ports").to_string();
        assert_eq!(said, "use h:7: -p 8 names another port; give one of them");
    }
}
