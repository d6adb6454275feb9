//! From the words for a target to the one address that the policy allows.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::Duration;

use linerate_core::policy::Act;
use linerate_core::record::DEFAULT_PORT;

use super::kind::MeasureKind;
use crate::policy_guard::PolicyClient;
use crate::web::error::ApiError;
use crate::web::state::State;

/// A name server has this long to answer.
const LOOKUP_WITHIN: Duration = Duration::from_secs(5);
/// A name of the DNS (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;
/// Ports below are those of other services: a target is no list of them to be tried.
const PORT_MIN: u16 = 1024;

/// Target of a measurement from this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasureTarget {
    /// As the client wrote it, without its port.
    pub(super) name: String,
    /// The address that is measured to, and no other.
    pub(super) address: IpAddr,
    /// Port of `linerate serve` at the target.
    pub(super) port: u16,
}

impl MeasureTarget {
    /// Reads a target, looks it up, and asks the policy. Whom it allows nothing at all has nothing
    /// looked up.
    pub(crate) async fn resolve_allowed(
        text: &str,
        kind: MeasureKind,
        state: &State,
        client: &PolicyClient,
    ) -> Result<Self, ApiError> {
        let target = Self::find_any_port(text, kind, state, client).await?;
        if target.port < PORT_MIN {
            return Err(ApiError::bad_request(format!(
                "target: a port is {PORT_MIN} to 65535 here"
            )));
        }
        Ok(target)
    }

    /// The address that is measured to.
    pub(crate) const fn address(&self) -> IpAddr {
        self.address
    }

    /// Port of the target.
    pub(crate) const fn port(&self) -> u16 {
        self.port
    }

    /// The same for what sends no load.
    pub(crate) async fn find_any_port(
        text: &str,
        kind: MeasureKind,
        state: &State,
        client: &PolicyClient,
    ) -> Result<Self, ApiError> {
        let (name, port) = split_host_port(text).map_err(ApiError::bad_request)?;
        if port.is_some() && !kind.needs_server() {
            return Err(ApiError::bad_request(format!("target: {} has no port", kind.name())));
        }
        let port = port.unwrap_or(DEFAULT_PORT);
        if state.gate.policy_guard().targets(client).is_empty() {
            let nobody = IpAddr::from([0, 0, 0, 0]);
            let why = may_reach(state, client, nobody).err().unwrap_or_default();
            let say = format!("{why}; its operator may name targets: measure_to in the policy");
            return Err(ApiError::forbidden(say));
        }
        let found = addresses(&name).await?;
        let mut refused = None;
        for address in found {
            match may_reach(state, client, address) {
                Ok(()) => return Ok(Self { name, address, port }),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        let none = || format!("{name}: the name has no address");
        Err(ApiError::forbidden(refused.unwrap_or_else(none)))
    }
}

/// Checks that the policy lets a client have a measurement to an address.
fn may_reach(state: &State, client: &PolicyClient, address: IpAddr) -> Result<(), String> {
    let act = Act::MeasureTo(address);
    let nobody = || Err("this server has no policy, so it measures to nobody".to_owned());
    state.gate.policy_guard().allows(act, client).unwrap_or_else(nobody)
}

/// A name or an address, and a port.
fn split_host_port(text: &str) -> Result<(String, Option<u16>), String> {
    let text = text.trim();
    let wrong = || "target: HOST, HOST:PORT, ADDRESS or [ADDRESS]:PORT".to_owned();
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((address.to_string(), None));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok((address.ip().to_string(), Some(address.port())));
    }
    let (name, port) = text.split_once(':').map_or((text, None), |(name, port)| (name, Some(port)));
    let port = port.map(str::parse).transpose().map_err(|_| wrong())?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    (fits && name.bytes().all(plain)).then(|| (name.to_owned(), port)).ok_or_else(wrong)
}

async fn addresses(name: &str) -> Result<Vec<IpAddr>, ApiError> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Ok(vec![address]);
    }
    let asked = (name.to_owned(), 0);
    let look = tokio::task::spawn_blocking(move || {
        asked.to_socket_addrs().map(|all| all.map(|address| address.ip()).collect::<Vec<_>>())
    });
    let found = tokio::time::timeout(LOOKUP_WITHIN, look).await;
    let late = || ApiError::bad_request(format!("{name}: no name server answers"));
    let unknown = || ApiError::bad_request(format!("{name}: the name is not known"));
    found.map_err(|_| late())?.ok().and_then(Result::ok).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_or_an_address_with_or_without_a_port() {
        let of = |text: &str| split_host_port(text);
        assert_eq!(of("a.example"), Ok(("a.example".to_owned(), None)));
        assert_eq!(of(" a.example:6000 "), Ok(("a.example".to_owned(), Some(6000))));
        assert_eq!(of("2001:db8::1"), Ok(("2001:db8::1".to_owned(), None)));
        assert_eq!(of("[2001:db8::1]:6000"), Ok(("2001:db8::1".to_owned(), Some(6000))));
        for wrong in ["", "a b", "a:", "a:b", "a:70000", "http://a", "a/b", "%00"] {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
        assert!(of(&"a".repeat(254)).is_err());
    }
}
