//! Probes that are handshakes: a new TCP connection to the server each time, closed at once, one
//! after another. Left out: TLS, which the server does not speak, and requests over them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::TcpOptions;
use linerate_sys::{clock, tcp};

use super::kept::Kept;
use crate::failure::words_of;
use crate::rtt::{ProbeAnswer, Sink};

/// A stop is looked at as often.
const LOOK: Duration = Duration::from_millis(20);

/// The server, and the way to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshakes {
    pub(super) peer: SocketAddr,
    pub(super) local: Option<IpAddr>,
    /// From the begin of one to that of the next, unless it takes longer.
    pub(super) interval: Duration,
    /// A handshake that takes longer counts as lost.
    pub(super) timeout: Duration,
}

impl Handshakes {
    /// Connects again and again: so often, until a time, or until stopped.
    /// # Errors
    /// When the server refuses, or this host cannot.
    pub(super) fn run(
        self,
        count: Option<u32>,
        until: Option<MonoTime>,
        stop: &Stop,
        kept: &mut Kept,
    ) -> Result<(), Failure> {
        for number in 0..count.map_or(u64::MAX, u64::from) {
            let t1 = clock::monotonic();
            if stop.is_requested() || until.is_some_and(|until| t1 >= until) {
                break;
            }
            kept.probe_sent(number, t1);
            let made = tcp::connect(self.peer, self.local, &TcpOptions::default(), self.timeout);
            let at = clock::monotonic();
            match made {
                Ok(_) => {
                    kept.answered(&ProbeAnswer::from_sequence(number, at), at, at.nanos_since(t1))
                }
                Err(error) if error.source.kind() == std::io::ErrorKind::TimedOut => {
                    kept.probe_lost(number);
                }
                Err(error) => {
                    kept.probe_lost(number);
                    let peer = self.peer.to_string();
                    let reason = words_of(&error.source);
                    return Err(Failure::new(Fault::Unreachable, "connect to", peer, reason));
                }
            }
            let next = t1 + self.interval;
            while !stop.is_requested() && clock::monotonic() < next {
                clock::sleep(next.duration_since(clock::monotonic()).min(LOOK));
            }
        }
        Ok(())
    }
}
