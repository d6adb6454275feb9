//! What came from one address to the UDP port that iperf 2 and ttcp share, and the answer to its
//! end.

use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{ClientHeader, UdpReceiver, UdpReport, UdpTaken};
use crate::ttcp;

/// Counts the datagrams of one sender.
#[derive(Debug)]
pub struct UdpTally {
    receiver: Receiver,
    /// All that came, and all that was answered.
    came_bytes: u64,
    answered_bytes: u64,
    /// When its first datagram came.
    pub begin: MonoTime,
    /// When its last one did.
    pub last: MonoTime,
}

#[derive(Debug)]
enum Receiver {
    Iperf(Box<UdpReceiver>),
    /// With whether its end came.
    Ttcp(ttcp::UdpReceiver, bool),
}

/// What came from a client until now.
#[derive(Clone, Copy, Debug)]
pub struct UdpArrived {
    /// Bytes of all its datagrams.
    pub bytes: u64,
    /// Since its first datagram, or from that to its end.
    pub span: Duration,
    /// No more comes.
    pub ended: bool,
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

impl UdpTally {
    /// Of a sender, by its first datagram, which is not taken yet.
    ///
    /// ttcp begins with a mark, or where that was lost with its pattern: four printable characters
    /// where iperf 2 has a number, which would be beyond 500 million.
    pub fn of(datagram: &[u8], now: MonoTime) -> Self {
        let printable = datagram.iter().take(4).all(|byte| (b' '..=b'~').contains(byte));
        let receiver = if datagram.len() <= ttcp::MARK_BYTES || printable {
            Receiver::Ttcp(ttcp::UdpReceiver::default(), false)
        } else {
            Receiver::Iperf(Box::default())
        };
        Self { receiver, came_bytes: 0, answered_bytes: 0, begin: now, last: now }
    }

    /// Of a transmitter of ttcp that begins now, whatever its first datagram is.
    pub fn of_ttcp(now: MonoTime) -> Self {
        Self::of(&[], now)
    }

    /// Takes a datagram that came at `now`, `wall_us` by the wall clock; the answer, where it ends
    /// the test.
    pub fn take(&mut self, datagram: &[u8], now: MonoTime, wall_us: u64) -> Option<Vec<u8>> {
        self.last = now;
        self.came_bytes += datagram.len() as u64;
        match &mut self.receiver {
            Receiver::Iperf(receiver) => {
                if receiver.take(datagram, datagram.len(), wall_us) != UdpTaken::End {
                    return None;
                }
                let report = receiver.report();
                // Never more to an address than came from it, however often it ends.
                let answered = self.answered_bytes + report.len() as u64;
                let earned = answered <= self.came_bytes;
                earned.then(|| self.answered_bytes = answered).map(|()| report)
            }
            // What comes behind the end is the end again.
            Receiver::Ttcp(_, true) => None,
            Receiver::Ttcp(receiver, ended) => {
                *ended = receiver.take(datagram.len()) == ttcp::Received::End;
                None
            }
        }
    }

    /// What came until `now`.
    pub fn came(&self, now: MonoTime) -> UdpArrived {
        let ended = self.ended();
        let until = if ended { self.last } else { now };
        let span = Duration::from_nanos(until.nanos_since(self.begin));
        UdpArrived { bytes: self.came_bytes, span, ended }
    }

    /// Whether the sender has said that it is done.
    pub fn ended(&self) -> bool {
        match &self.receiver {
            Receiver::Iperf(receiver) => receiver.ended(),
            Receiver::Ttcp(_, ended) => *ended,
        }
    }

    /// The header of an iperf 2 that sent one.
    pub fn header(&self) -> Option<ClientHeader> {
        match &self.receiver {
            Receiver::Iperf(receiver) => receiver.header(),
            Receiver::Ttcp(..) => None,
        }
    }

    /// The counts so far.
    pub fn counted(&self) -> UdpCounted {
        match &self.receiver {
            Receiver::Iperf(receiver) => UdpCounted::Iperf(receiver.counts()),
            Receiver::Ttcp(receiver, _) => {
                UdpCounted::Ttcp { bytes: receiver.bytes, datagrams: receiver.datagrams }
            }
        }
    }
}
