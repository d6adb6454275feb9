//! Counts the datagrams of one source to the UDP port that iperf 2 and ttcp share, and builds the
//! report at the end.

use std::time::Duration;

use linerate_core::time::MonoTime;

use super::{ClientHeader, UdpDatagramKind, UdpReceiver, UdpReport};
use crate::ttcp;

/// Counters of the datagrams of one sender.
#[derive(Debug)]
pub struct UdpTally {
    receiver: Receiver,
    /// Bytes received from the sender, and bytes of reports sent to it.
    came_bytes: u64,
    answered_bytes: u64,
    /// Arrival of the first datagram.
    pub begin: MonoTime,
    /// Arrival of the last datagram.
    pub last: MonoTime,
}

#[derive(Debug)]
enum Receiver {
    Iperf(Box<UdpReceiver>),
    /// ttcp; true once its end has arrived.
    Ttcp(ttcp::TtcpUdpReceiver, bool),
}

/// Bytes and time of a client's data so far.
#[derive(Clone, Copy, Debug)]
pub struct UdpArrived {
    /// Bytes of all datagrams.
    pub bytes: u64,
    /// Time from the first datagram until now, or until the end.
    pub span: Duration,
    /// The client's end has arrived.
    pub ended: bool,
}

/// Counters by the kind of the sender.
#[derive(Clone, Copy, Debug)]
pub enum UdpCounted {
    /// Counters of iperf 2, as its report has them.
    Iperf(UdpReport),
    /// Counters of ttcp, whose datagrams have no sequence.
    Ttcp {
        /// Payload bytes.
        bytes: u64,
        /// Datagrams without the marks.
        datagrams: u64,
    },
}

impl UdpTally {
    /// Detects a sender by its first datagram, which is not counted yet.
    ///
    /// ttcp starts with a mark or, where that was lost, with its pattern: four printable characters
    /// where iperf 2 has a number, which would be beyond 500 million.
    pub fn from_first_datagram(datagram: &[u8], now: MonoTime) -> Self {
        let printable = datagram.iter().take(4).all(|byte| (b' '..=b'~').contains(byte));
        let receiver = if datagram.len() <= ttcp::MARK_BYTES || printable {
            Receiver::Ttcp(ttcp::TtcpUdpReceiver::default(), false)
        } else {
            Receiver::Iperf(Box::default())
        };
        Self { receiver, came_bytes: 0, answered_bytes: 0, begin: now, last: now }
    }

    /// A transmitter of ttcp that starts at `now`; its first datagram is not examined.
    pub fn for_ttcp(now: MonoTime) -> Self {
        Self::from_first_datagram(&[], now)
    }

    /// Counts a datagram that arrived at `now`, `wall_us` by the wall clock; returns the report
    /// where it is the end of the test.
    pub fn count_datagram(
        &mut self,
        datagram: &[u8],
        now: MonoTime,
        wall_us: u64,
    ) -> Option<Vec<u8>> {
        self.last = now;
        self.came_bytes += datagram.len() as u64;
        match &mut self.receiver {
            Receiver::Iperf(receiver) => {
                if receiver.count_datagram(datagram, datagram.len(), wall_us)
                    != UdpDatagramKind::End
                {
                    return None;
                }
                let report = receiver.report();
                // An address never gets more bytes than came from it, even if ends are repeated.
                let answered = self.answered_bytes + report.len() as u64;
                let earned = answered <= self.came_bytes;
                earned.then(|| self.answered_bytes = answered).map(|()| report)
            }
            // Datagrams after the end are repetitions of the end.
            Receiver::Ttcp(_, true) => None,
            Receiver::Ttcp(receiver, ended) => {
                *ended = receiver.count_datagram(datagram.len()) == ttcp::TtcpDatagram::End;
                None
            }
        }
    }

    /// Bytes and time of the data until `now`.
    pub fn arrivals(&self, now: MonoTime) -> UdpArrived {
        let ended = self.has_ended();
        let until = if ended { self.last } else { now };
        let span = Duration::from_nanos(until.nanos_since(self.begin));
        UdpArrived { bytes: self.came_bytes, span, ended }
    }

    /// True once the sender's end has arrived.
    pub fn has_ended(&self) -> bool {
        match &self.receiver {
            Receiver::Iperf(receiver) => receiver.has_ended(),
            Receiver::Ttcp(_, ended) => *ended,
        }
    }

    /// Header of an iperf 2 client, if it sent one.
    pub fn header(&self) -> Option<ClientHeader> {
        match &self.receiver {
            Receiver::Iperf(receiver) => receiver.header(),
            Receiver::Ttcp(..) => None,
        }
    }

    /// Counters so far.
    pub fn counted(&self) -> UdpCounted {
        match &self.receiver {
            Receiver::Iperf(receiver) => UdpCounted::Iperf(receiver.counts()),
            Receiver::Ttcp(receiver, _) => {
                UdpCounted::Ttcp { bytes: receiver.bytes, datagrams: receiver.datagrams }
            }
        }
    }
}
