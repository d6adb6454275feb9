//! What came from one address to the UDP port that iperf 2 and ttcp share, and the answer to its
//! end.

use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{ClientHeader, UdpReceiver, UdpReport, UdpTaken};
use linerate_proto::ttcp;

use super::address_validation::Arrived;

/// Counts the datagrams of one sender.
pub(super) struct Tally {
    machine: Machine,
    /// All that came, and all that was answered.
    came_bytes: u64,
    answered_bytes: u64,
    pub(super) begin: MonoTime,
    pub(super) last: MonoTime,
}

enum Machine {
    Iperf(Box<UdpReceiver>),
    /// With whether its end came.
    Ttcp(ttcp::UdpReceiver, bool),
}

/// What was counted.
#[derive(Clone, Copy, Debug)]
pub enum UdpCounted {
    /// Of iperf 2, in its own figures.
    Iperf(UdpReport),
    /// Of ttcp, which has no numbers.
    Ttcp {
        /// Payload.
        bytes: u64,
        /// Marks left out.
        datagrams: u64,
    },
}

impl Tally {
    /// Of a sender, by its first datagram, which is not taken yet.
    ///
    /// ttcp begins with a mark, or where that was lost with its pattern: four printable characters
    /// where iperf 2 has a number, which would be beyond 500 million.
    pub(super) fn of(datagram: &[u8], now: MonoTime) -> Self {
        let printable = datagram.iter().take(4).all(|byte| (b' '..=b'~').contains(byte));
        let machine = if datagram.len() <= ttcp::MARK_BYTES || printable {
            Machine::Ttcp(ttcp::UdpReceiver::default(), false)
        } else {
            Machine::Iperf(Box::default())
        };
        Self { machine, came_bytes: 0, answered_bytes: 0, begin: now, last: now }
    }

    /// Takes a datagram that came at `now`, `wall_us` by the wall clock; the answer, where it ends
    /// the test.
    pub(super) fn take(&mut self, datagram: &[u8], now: MonoTime, wall_us: u64) -> Option<Vec<u8>> {
        self.last = now;
        self.came_bytes += datagram.len() as u64;
        match &mut self.machine {
            Machine::Iperf(receiver) => {
                if receiver.take(datagram, datagram.len(), wall_us) != UdpTaken::End {
                    return None;
                }
                let report = receiver.report();
                // Never more to an address than came from it, however often it ends.
                let answered = self.answered_bytes + report.len() as u64;
                let earned = answered <= self.came_bytes;
                earned.then(|| self.answered_bytes = answered).map(|()| report)
            }
            Machine::Ttcp(receiver, ended) => {
                *ended |= receiver.take(datagram.len()) == ttcp::Received::End;
                None
            }
        }
    }

    /// What came until `now`.
    pub(super) fn came(&self, now: MonoTime) -> Arrived {
        let ended = self.ended();
        let until = if ended { self.last } else { now };
        let span = Duration::from_nanos(until.nanos_since(self.begin));
        Arrived { bytes: self.came_bytes, span, ended }
    }

    /// Whether the sender has said that it is done.
    pub(super) fn ended(&self) -> bool {
        match &self.machine {
            Machine::Iperf(receiver) => receiver.ended(),
            Machine::Ttcp(_, ended) => *ended,
        }
    }

    /// The header of an iperf 2 that sent one.
    pub(super) fn header(&self) -> Option<ClientHeader> {
        match &self.machine {
            Machine::Iperf(receiver) => receiver.header(),
            Machine::Ttcp(..) => None,
        }
    }

    /// The counts so far.
    pub(super) fn counted(&self) -> UdpCounted {
        match &self.machine {
            Machine::Iperf(receiver) => UdpCounted::Iperf(receiver.counts()),
            Machine::Ttcp(receiver, _) => {
                UdpCounted::Ttcp { bytes: receiver.bytes, datagrams: receiver.datagrams }
            }
        }
    }
}
