//! `ttcp -r -u`: counts the datagrams of the first that announces itself, until the end.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Duration;

use linerate_core::record::{Failure, Fault, FlowEnd};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf2::{Mode, UdpCounted, UdpServer, UdpTally, UdpTerms};
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{BUFFER_BYTES, DatagramOptions, DatagramSocket};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;
use linerate_sys::thread::current_cost;

use crate::flow::tcp::cost_since;
use crate::flow::{self, Flows, FlowsAnswer, TestSession};
use crate::foreign::iperf2::udp_arrivals::{BUFFER_BYTES_MAX, Iperf2Arrivals, locked, state_of};

/// A transmitter that is silent for this long is gone; ttcp itself waits for ever.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The UDP socket of a receiving ttcp.
#[derive(Debug)]
pub struct TtcpUdpListener {
    socket: DatagramSocket,
}

impl TtcpUdpListener {
    /// Opens the port, with a receive buffer of `window_bytes` where that is given.
    /// # Errors
    /// When the port is taken.
    pub fn bind(local: SocketAddr, window_bytes: Option<u64>) -> Result<Self, Failure> {
        let options = DatagramOptions {
            local,
            window_bytes,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            dscp: None,
            shared: false,
        };
        let socket = DatagramSocket::open(&options);
        socket.map(|socket| Self { socket }).map_err(|error| crate::failure::system(&error))
    }

    /// Takes one transfer; who sent it, what came, and whether its end did.
    /// # Errors
    /// When `stop` is asked before anything came, or the socket fails.
    pub fn receive(&self, stop: &Stop) -> Result<(SocketAddr, FlowEnd, bool), Failure> {
        let (peer, first) = self.first_datagram(stop)?;
        self.socket.connect(peer).map_err(|error| crate::failure::system(&error))?;
        let (before, begin) = (current_cost(), monotonic());
        let mut tally = UdpTally::for_ttcp(begin);
        tally.count_datagram(&first, begin, 0);
        let tally = Mutex::new(tally);
        let mut arrivals = Iperf2Arrivals::from_socket(&self.socket, &tally);
        let (mode, silence_max) = (Mode::Forward, SILENCE_MAX);
        let terms = UdpTerms { mode, silence_max, interval: None, back: None };
        let mut session =
            TestSession::new(UdpServer::new(begin, terms), TtcpTransmitter { peer, tally: &tally });
        flow::run(&mut session, &mut arrivals, stop)?;
        let (cost, calls) = (cost_since(before), arrivals.calls);
        let tally = locked(&tally);
        let bytes = match tally.counted() {
            UdpCounted::Ttcp { bytes, .. } => bytes,
            UdpCounted::Iperf(counts) => counts.bytes,
        };
        let end = FlowEnd {
            bytes,
            bytes_measured: bytes,
            span_ns: tally.last.nanos_since(tally.begin),
            // With that of the first.
            io_calls: calls + 1,
            cpu_user_ns: cost.user_ns,
            cpu_system_ns: cost.system_ns,
            technique: "recvmmsg".to_owned(),
            ..FlowEnd::default()
        };
        Ok((peer, end, tally.has_ended()))
    }

    /// The first datagram and its sender.
    fn first_datagram(&self, stop: &Stop) -> Result<(SocketAddr, Vec<u8>), Failure> {
        let mut bytes = vec![0; BUFFER_BYTES];
        while !stop.is_requested() {
            if !readable(&self.socket, LOOK).unwrap_or(false) {
                continue;
            }
            if let Ok(Some((length, peer))) = self.socket.receive_from(&mut bytes) {
                bytes.truncate(length);
                return Ok((peer, bytes));
            }
        }
        let reason = "stopped before anything came";
        Err(Failure::new(Fault::Unreachable, "hear from", "a transmitter", reason))
    }
}

/// The datagrams of one transmitter.
struct TtcpTransmitter<'a> {
    peer: SocketAddr,
    tally: &'a Mutex<UdpTally>,
}

impl Flows for TtcpTransmitter<'_> {
    type Machine = UdpServer;

    fn carry_out(
        &mut self,
        _: MonoTime,
        _: Output<UdpServer>,
    ) -> Result<Option<FlowsAnswer<UdpServer>>, Failure> {
        Ok(None)
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        state_of(&locked(self.tally), now)
    }

    fn peer_name(&self) -> String {
        self.peer.to_string()
    }
}
