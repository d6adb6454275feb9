//! Where an agent finds its hub: the hub itself, or the broker which that hears.

use linerate_core::record::DEFAULT_PORT;
use linerate_outbound::Host;

/// The port of NATS.
#[cfg(feature = "scale")]
const BROKER_PORT: u16 = 4222;
/// User and password at the broker of NATS.
#[cfg(feature = "scale")]
type Login = (String, String);

/// A hub's address: `https://hub.example:5210`, or that of the broker which it hears:
/// `tls://USER:PASSWORD@broker.example:4222`.
#[derive(Clone, PartialEq, Eq)]
pub struct HubAddress {
    secure: bool,
    pub(super) host: Host,
    /// `None` for a hub's own address; for a broker's its login, where it has one.
    #[cfg(feature = "scale")]
    broker: Option<Option<Login>>,
}

impl std::fmt::Debug for HubAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HubAddress({self})")
    }
}

impl std::str::FromStr for HubAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?}: a hub is https://HOST[:PORT] or http://HOST[:PORT]");
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        let secure = match scheme {
            "https" => true,
            "http" => false,
            "nats" | "tls" => return broker(scheme, rest),
            _ => return Err(wrong()),
        };
        let host = Host::parse(rest.trim_end_matches('/'), DEFAULT_PORT).ok_or_else(wrong)?;
        Ok(Self {
            secure,
            host,
            #[cfg(feature = "scale")]
            broker: None,
        })
    }
}

impl std::fmt::Display for HubAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = match (self.is_broker(), self.secure) {
            (false, true) => "https",
            (false, false) => "http",
            (true, true) => "tls",
            (true, false) => "nats",
        };
        write!(f, "{scheme}://{}", self.authority())
    }
}

impl HubAddress {
    /// True where the hub or broker is reached over TLS.
    pub const fn is_secure(&self) -> bool {
        self.secure
    }

    /// True for the address of a message broker.
    pub const fn is_broker(&self) -> bool {
        #[cfg(feature = "scale")]
        {
            self.broker.is_some()
        }
        #[cfg(not(feature = "scale"))]
        {
            false
        }
    }

    /// User and password at a broker.
    #[cfg(feature = "scale")]
    pub(super) fn broker_credentials(&self) -> Option<(&str, &str)> {
        let (user, password) = self.broker.as_ref()?.as_ref()?;
        Some((user, password))
    }

    /// Host and port of the hub, `HOST:PORT`.
    pub(super) fn authority(&self) -> String {
        self.host.with_port()
    }
}

/// A broker's address: what stands behind its scheme.
#[cfg(feature = "scale")]
fn broker(scheme: &str, rest: &str) -> Result<HubAddress, String> {
    let (login, host) = match rest.rsplit_once('@') {
        Some((login, host)) => (Some(login), host),
        None => (None, rest),
    };
    // The login is not repeated.
    let wrong =
        || format!("{scheme}://{host}: a broker is tls://[USER:PASSWORD@]HOST[:PORT] or nats://…");
    let login = login.map(|login| login.split_once(':').ok_or_else(wrong)).transpose()?;
    let login = login.map(|(user, password)| (user.to_owned(), password.to_owned()));
    let host = Host::parse(host.trim_end_matches('/'), BROKER_PORT).ok_or_else(wrong)?;
    Ok(HubAddress { secure: scheme == "tls", host, broker: Some(login) })
}

#[cfg(not(feature = "scale"))]
fn broker(scheme: &str, _: &str) -> Result<HubAddress, String> {
    Err(without_broker(scheme))
}

/// The refusal of a broker's address in a program that was built without brokers.
#[cfg(any(test, not(feature = "scale")))]
fn without_broker(scheme: &str) -> String {
    format!("{scheme}: {}", linerate_core::record::BuildPart::Scale.refusal())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_has_a_scheme_a_host_and_perhaps_a_port() {
        let of = |text: &str| text.parse::<HubAddress>().map(|address| address.to_string());
        let is = |text: &str| Ok(text.to_owned());
        assert_eq!(of("https://hub.example"), is("https://hub.example:5210"));
        assert_eq!(of("http://192.0.2.1:80/"), is("http://192.0.2.1:80"));
        assert_eq!(of("https://[2001:db8::1]"), is("https://[2001:db8::1]:5210"));
        assert_eq!(of("https://[2001:db8::1]:9"), is("https://[2001:db8::1]:9"));
        #[cfg(feature = "scale")]
        for (text, shown) in [
            ("nats://192.0.2.1", "nats://192.0.2.1:4222"),
            ("tls://a:p@ss@broker.example:1", "tls://broker.example:1"),
        ] {
            assert_eq!(of(text), is(shown), "without its password");
        }
        #[cfg(not(feature = "scale"))]
        assert_eq!(of("nats://192.0.2.1"), Err(without_broker("nats")));
        let refused = "nats: this program was built without NATS, PostgreSQL and Parquet; ";
        assert!(without_broker("nats").starts_with(refused));
        for wrong in
            ["hub", "ftp://hub", "nats://a@h", "https://", "http://h:x", "http://h/p", "http://a b"]
        {
            assert!(wrong.parse::<HubAddress>().is_err(), "{wrong}");
        }
    }
}
