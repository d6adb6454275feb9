//! What comes to a UDP socket of iperf 2's and ttcp's server: taken in joined buffers (UDP_GRO,
//! recvmmsg), counted, and answered where it ends a test.

use std::cell::{Cell, OnceCell};
use std::convert::Infallible;
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, TestFailureReason};
use linerate_proto::iperf2::{UdpServer, UdpTally};
use linerate_sys::clock::{monotonic, realtime_offset_ns};
use linerate_sys::datagram_socket::{DatagramSocket, ReceiveBatch};
use linerate_sys::poll::{any_readable, readable};

use super::udp_layout::{arrived_at, wall_us};
use crate::flow::{Net, Words};

/// Room for what arrives while the thread does something else.
pub(crate) const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// A wait for datagrams ends after this, to look at everything else.
const CALL_TIMEOUT: Duration = Duration::from_millis(10);

/// The socket of what a server sends.
#[derive(Default)]
pub(crate) struct SocketBack {
    pub(crate) socket: OnceCell<DatagramSocket>,
    /// True once the client's port refused a datagram of this stream, which has a socket of its
    /// own.
    pub(crate) refused: Cell<bool>,
}

/// The clock of a test, and the datagrams beside data of what a server sends; waiting is taking
/// datagrams.
pub(crate) struct Iperf2Arrivals<'a> {
    socket: &'a DatagramSocket,
    tally: &'a Mutex<UdpTally>,
    batch: ReceiveBatch,
    /// Answers and data of this end that the client's port refused, one after the other.
    pub(crate) refusals: Rc<Cell<u32>>,
    /// Where this end sends.
    pub(crate) back: Rc<SocketBack>,
    /// Calls that brought something.
    pub(crate) calls: u64,
}

impl<'a> Iperf2Arrivals<'a> {
    pub(crate) fn from_socket(socket: &'a DatagramSocket, tally: &'a Mutex<UdpTally>) -> Self {
        // Where the kernel joins nothing they come one by one; a call that blocks is looked at
        // when it comes back.
        let _ = (socket.join_receives(), socket.set_call_timeout(CALL_TIMEOUT));
        let (refusals, back) = (Rc::default(), Rc::default());
        Self { socket, tally, batch: ReceiveBatch::growing(), refusals, back, calls: 0 }
    }
}

impl Net for Iperf2Arrivals<'_> {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    /// Reads a datagram that the client sent on its own stream.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.back.socket.get().map(|socket| socket.receive_from(bytes)) {
            Some(Ok(Some((length, _)))) if length > 0 => return Ok(length),
            // An error is that of a datagram that was refused.
            Some(Err(_)) => self.back.refused.set(true),
            _ => {}
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // One that finds no room is said again; a refusal is told by this call or, once it has
        // arrived, by the next one.
        let sent = self.back.socket.get().map(|socket| socket.send_when_room(bytes));
        if sent.is_some_and(|sent| sent.is_err()) {
            self.back.refused.set(true);
        }
        Ok(bytes.len())
    }

    /// Takes what is there; waits for it for a moment.
    fn wait(&mut self, until: MonoTime, for_bytes: bool) {
        if let Some(back) = self.back.socket.get().filter(|_| for_bytes) {
            // A failed wait is a look without datagrams.
            let _ = any_readable(
                &[self.socket.as_fd(), back.as_fd()],
                until.duration_since(monotonic()),
            );
            if !readable(self.socket, Duration::ZERO).unwrap_or(false) {
                return;
            }
        }
        if let Err(error) = self.batch.receive(self.socket) {
            let refused = error.kind() == io::ErrorKind::ConnectionRefused;
            self.refusals.set(self.refusals.get() + u32::from(refused));
            return;
        }
        let (now, offset_ns) = (monotonic(), realtime_offset_ns());
        let mut tally = locked(self.tally);
        for arrived in self.batch.arrived() {
            let at = arrived_at(arrived.arrived_ns, offset_ns, now);
            let wall_us = arrived.arrived_ns.map_or_else(|| wall_us(now), |ns| ns / 1000);
            let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len()).max(1);
            // An empty datagram is one, too: ttcp may mark by it.
            let none = arrived.bytes.is_empty().then_some(arrived.bytes);
            for datagram in arrived.bytes.chunks(size).chain(none) {
                if let Some(report) = tally.count_datagram(datagram, at, wall_us) {
                    // The end comes again where the report is lost or finds no room.
                    let _ = self.socket.send(&report);
                }
            }
        }
        self.calls += 1;
        self.refusals.set(0);
    }
}

/// The counts, whatever became of the thread that had them.
pub(crate) fn locked(tally: &Mutex<UdpTally>) -> MutexGuard<'_, UdpTally> {
    tally.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same as the machine knows them.
pub(crate) fn state_of(tally: &UdpTally, now: MonoTime) -> FlowState {
    let came = tally.arrivals(now);
    FlowState { received: came.bytes, complete: came.ended, ..FlowState::default() }
}

impl Words for UdpServer {
    fn failure(peer: &str, reason: TestFailureReason<Infallible>) -> Failure {
        Failure::new(Fault::System, "serve UDP of", peer.to_string(), format!("{reason:?}"))
    }
}
