//! The other end of a test as every protocol has it: its address in words, the local address that
//! is bound towards it, the token that is shown to it, and the failures of a connection to it.
//!
//! What only this program's own control connection has is in `flow/tcp/control.rs`.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

use linerate_core::record::{AccessToken, Failure, FailureCode, Fault};
use linerate_proto::native::{NativeCredentials, Nonce};
use linerate_sys::clock::random_bytes;
use linerate_sys::tcp;

use crate::failure::{code_of, unreachable_words, words_of};
use crate::socket_address::canonical;

/// An address as people write it: IPv4 peers of a socket for both families are IPv4.
pub(crate) fn plain_address(address: SocketAddr) -> String {
    canonical(address).to_string()
}

/// The local address that a plan names.
pub(crate) fn bind_address(bind: Option<&str>) -> Result<Option<IpAddr>, Failure> {
    let Some(text) = bind else { return Ok(None) };
    // The interface of a link-local address is the peer's.
    let (address, _) = text.split_once('%').unwrap_or((text, ""));
    address.parse().map(Some).map_err(|_| {
        Failure::new(Fault::Usage, "bind", text, "not an IP address")
            .advise("give an address of this host to -B")
            .with_code(FailureCode::Listen)
    })
}

/// The token of a plan with a fresh nonce, as a server asks for it at one login.
pub(crate) fn credentials(token: Option<&AccessToken>) -> Option<NativeCredentials> {
    token.map(|token| NativeCredentials { token: token.clone(), nonce: Nonce(random_bytes()) })
}

/// The failure of a connect(2), or of a bind(2) before it, with what to do about it.
pub(crate) fn connect_failure(error: &linerate_sys::Error) -> Failure {
    let code = code_of(error);
    let peer = error.object.parse::<SocketAddr>().ok().filter(|_| error.call == tcp::CONNECT);
    if let Some((reason, advice)) =
        peer.and_then(|address| unreachable_words(&error.source, address.ip()))
    {
        return Failure::new(Fault::Unreachable, error.call, &error.object, reason)
            .advise(advice)
            .with_code(code);
    }
    let (fault, advice) = match (code, error.source.kind()) {
        (_, ErrorKind::ConnectionRefused) => {
            (Fault::Unreachable, "start `linerate serve` there, or name its port with -p")
        }
        (_, ErrorKind::TimedOut) => {
            (Fault::Unreachable, "is the host up and the port open on the way?")
        }
        (Some(FailureCode::Connect), _) => {
            (Fault::Unreachable, "look at the address and the route to it")
        }
        (Some(FailureCode::Listen), _) => {
            (Fault::System, "give -B an address of this host in the host's family")
        }
        (Some(FailureCode::CongestionControl), _) => {
            (Fault::System, "see net.ipv4.tcp_available_congestion_control on this host")
        }
        _ => (Fault::System, "see tcp(7)"),
    };
    Failure::new(fault, error.call, &error.object, words_of(&error.source))
        .advise(advice)
        .with_code(code)
}

/// The control connection with `peer` failed.
pub(crate) fn connection_failure(peer: &str, attempt: &str, error: &io::Error) -> Failure {
    Failure::new(Fault::Unreachable, attempt, peer, words_of(error))
        .advise("the results so far are kept")
}
