//! Loss and jitter of datagrams between a browser and this host, over WebTransport (HTTP/3, QUIC)
//! on a UDP port of its own: `spec/datagrams.md`.
//!
//! Who has no token of a running test gets no session, who has not shown that its address is its
//! own gets a Retry that is shorter than what it sent (RFC 9000 §8.1.2), and what goes down is as
//! much as what comes up. A thread of its own serves all sessions, so that no request waits for a
//! datagram and no datagram for a request.

#[cfg(feature = "datagrams")]
mod certificate;
#[cfg_attr(not(feature = "datagrams"), allow(dead_code, reason = "no rounds without WebTransport"))]
mod fate;
#[cfg(all(test, feature = "datagrams"))]
#[path = "no_port.rs"]
#[allow(dead_code, unreachable_pub, reason = "its refusals alone are tested")]
pub(crate) mod no_port;
pub(crate) mod phases;
#[cfg(feature = "datagrams")]
pub(crate) mod port;
#[cfg(not(feature = "datagrams"))]
#[path = "no_port.rs"]
pub(crate) mod port;
#[cfg(feature = "datagrams")]
mod round;
#[cfg_attr(not(feature = "datagrams"), allow(dead_code, reason = "no rounds without WebTransport"))]
pub(crate) mod round_result;
#[cfg(feature = "datagrams")]
mod server;
#[cfg(feature = "datagrams")]
mod session;

#[cfg(not(feature = "datagrams"))]
pub(super) use port::run;
#[cfg(feature = "datagrams")]
pub(super) use server::run;
