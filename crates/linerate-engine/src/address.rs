//! From a name and the family that the user left to one address: the first one, or of a server the
//! first one that takes a connection (Happy Eyeballs, RFC 8305).

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, FailureCode, Fault, IpFamily, ServerPlan};
use linerate_core::time::MonoTime;
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::{self, TcpOptions};

use crate::failure::words_of;
use crate::flow::peer::{bind_address, connect_failure};

/// Addresses of one name that are tried.
const ADDRESSES_MAX: usize = 8;
/// A choice among several addresses holds for so long (RFC 8305 §4 lets it be kept 10 minutes).
const CHOICE_MAX: Duration = Duration::from_secs(600);
/// Choices that are kept.
const CHOICES_MAX: usize = 64;

/// Addresses that took a connection, so that all parts of a measurement go to the same one.
static CHOICES: Mutex<Vec<Choice>> = Mutex::new(Vec::new());

struct Choice {
    host: String,
    address: SocketAddr,
    made: MonoTime,
}

/// The first address of `host` in the wanted family, or the one that a server of that name was
/// found at, with `port`.
/// # Errors
/// When the name is not known, or has no address in that family.
pub(crate) fn resolve(
    host: &str,
    port: u16,
    family: Option<IpFamily>,
) -> Result<SocketAddr, Failure> {
    let addresses = addresses(host, port, family)?;
    let same_host = |choice: SocketAddr, address: SocketAddr| choice.ip() == address.ip();
    Ok(chosen(host, &addresses, same_host).unwrap_or(addresses[0]))
}

/// The address of a server: where its name has several, the first that takes a connection on the
/// server's port. One that refuses, or keeps silent for the delay of RFC 8305 §8, makes place for
/// the next.
/// # Errors
/// As [`resolve`], and when no address takes a connection.
pub(crate) fn resolve_server(server: &ServerPlan) -> Result<SocketAddr, Failure> {
    let addresses = addresses(&server.host, server.port, server.family)?;
    if let [only] = addresses[..] {
        return Ok(only);
    }
    if let Some(chosen) = chosen(&server.host, &addresses, |choice, it| choice == it) {
        return Ok(chosen);
    }
    let local = bind_address(server.bind.as_deref())?;
    let timeout = Duration::from_nanos(server.connect_timeout_ns);
    match tcp::connect_first(&addresses, local, &TcpOptions::control(), timeout) {
        Ok((_, address)) => {
            choose(&server.host, address);
            Ok(address)
        }
        Err(error) => Err(none_answers(&error, addresses.len())),
    }
}

/// Keeps the address of a name that took a connection.
pub(crate) fn choose(host: &str, address: SocketAddr) {
    let mut choices = CHOICES.lock().unwrap_or_else(PoisonError::into_inner);
    choices.retain(|choice| choice.host != host || choice.address.port() != address.port());
    if choices.len() >= CHOICES_MAX {
        choices.remove(0);
    }
    choices.push(Choice { host: host.to_owned(), address, made: monotonic() });
}

/// The address among these that took a connection not long ago.
fn chosen(
    host: &str,
    addresses: &[SocketAddr],
    is_it: impl Fn(SocketAddr, SocketAddr) -> bool,
) -> Option<SocketAddr> {
    let choices = CHOICES.lock().unwrap_or_else(PoisonError::into_inner);
    let now = monotonic();
    let fresh = |it: &&Choice| it.host == host && now.duration_since(it.made) < CHOICE_MAX;
    let choices: Vec<SocketAddr> =
        choices.iter().filter(fresh).map(|choice| choice.address).collect();
    addresses.iter().copied().find(|address| choices.iter().any(|choice| is_it(*choice, *address)))
}

/// The failure of a connection to any of several addresses.
fn none_answers(error: &linerate_sys::Error, count: usize) -> Failure {
    let failure = connect_failure(error);
    let others = if count == 2 { "the other address" } else { "every other address" };
    let reason = format!("{}, and {others} of that name failed, too", failure.reason);
    Failure { reason, ..failure }
}

/// Addresses of a name in the wanted family, in the order in which they are tried: that of the
/// resolver (RFC 6724), the families in turn (RFC 8305 §4). Not empty.
/// # Errors
/// As [`resolve`].
pub(crate) fn addresses(
    host: &str,
    port: u16,
    family: Option<IpFamily>,
) -> Result<Vec<SocketAddr>, Failure> {
    let fail = |reason: String| {
        Failure::new(Fault::Usage, "resolve", host, reason).with_code(FailureCode::Connect)
    };
    let advice = "check the spelling, or give an IP address";
    let all: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| fail(resolver_words(&error)).advise(advice))?
        .collect();
    let wanted = all.iter().copied().filter(|address| family_fits(family, *address)).collect();
    let addresses = in_turn(wanted);
    if addresses.is_empty() {
        let other = all.first().map_or_else(|| "nothing".to_owned(), |a| a.ip().to_string());
        let reason = format!("no {} address, only {other}", family_name(family));
        return Err(fail(reason).advise("drop -4 or -6"));
    }
    Ok(addresses)
}

/// Addresses with the families in turn, that of the first one first.
fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let Some(first) = addresses.first().map(SocketAddr::is_ipv6) else { return addresses };
    let (same, other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first);
    let pairs = same.len().max(other.len());
    let pair = |at: usize| [same.get(at).copied(), other.get(at).copied()];
    let mut all: Vec<SocketAddr> = (0..pairs).flat_map(pair).flatten().collect();
    all.dedup();
    all.truncate(ADDRESSES_MAX);
    all
}

fn resolver_words(error: &std::io::Error) -> String {
    let text = words_of(error);
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}

const fn family_fits(family: Option<IpFamily>, address: SocketAddr) -> bool {
    match family {
        None => true,
        Some(IpFamily::V4) => address.is_ipv4(),
        Some(IpFamily::V6) => address.is_ipv6(),
    }
}

const fn family_name(family: Option<IpFamily>) -> &'static str {
    match family {
        Some(IpFamily::V4) => "IPv4",
        Some(IpFamily::V6) => "IPv6",
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
        let failure = resolve("127.0.0.1", 7, Some(IpFamily::V6)).expect_err("no IPv6 address");
        assert_eq!(failure.exit_code(), 2);
        let text = failure.to_string();
        assert_eq!(text, "resolve 127.0.0.1: no IPv6 address, only 127.0.0.1; drop -4 or -6");
    }

    #[test]
    fn addresses_of_both_families_are_tried_in_turn() {
        let all = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().expect("an address")).collect()
        };
        // RFC 8305 §4: the family of the resolver's first address, then one of each.
        let sorted = all(&["[2001:db8::1]:7", "[2001:db8::2]:7", "192.0.2.1:7", "192.0.2.2:7"]);
        let tried = all(&["[2001:db8::1]:7", "192.0.2.1:7", "[2001:db8::2]:7", "192.0.2.2:7"]);
        assert_eq!(in_turn(sorted), tried);
        assert_eq!(in_turn(all(&["192.0.2.1:7"])), all(&["192.0.2.1:7"]));
        assert_eq!(in_turn(Vec::new()), []);
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
