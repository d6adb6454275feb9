//! `ttcp -r -u`: counts the datagrams of the first that announces itself, until the end.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{Failure, Fault, FlowEnd};
use linerate_core::time::MonoTime;
use linerate_proto::ttcp::{Received, UdpReceiver};
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{BUFFER_BYTES, DatagramOptions, DatagramSocket, ReceiveBatch};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;
use linerate_sys::thread::cost;

use crate::flow::tcp::cost_since;

/// Room for what arrives while the thread does something else.
const BUFFER_BYTES_MAX: u64 = 8 << 20;
/// A transmitter that is silent for this long is gone; ttcp itself waits for ever.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// How often the stop flag is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// A receiver's socket.
#[derive(Debug)]
pub struct UdpListener {
    socket: DatagramSocket,
}

/// Where the receiving stands.
struct Receiving {
    machine: UdpReceiver,
    begin: MonoTime,
    last: MonoTime,
    over: bool,
}

impl UdpListener {
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
        let (peer, first) = self.first(stop)?;
        self.socket.connect(peer).map_err(|error| crate::failure::system(&error))?;
        self.socket.join_receives();
        let (before, now) = (cost(), monotonic());
        let machine = UdpReceiver::default();
        let mut receiving = Receiving { machine, begin: now, last: now, over: false };
        receiving.take(first, now);
        let mut batch = ReceiveBatch::new();
        let mut calls = 1;
        while !receiving.over && !stop.asked() {
            let ready = readable(&self.socket, LOOK).unwrap_or(false);
            let now = monotonic();
            if ready && batch.receive(&self.socket).is_ok() {
                calls += 1;
                for arrived in batch.arrived() {
                    let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len()).max(1);
                    match arrived.bytes {
                        [] => receiving.take(0, now),
                        bytes => bytes.chunks(size).for_each(|it| receiving.take(it.len(), now)),
                    }
                }
            } else if now.since(receiving.last) >= SILENCE_MAX {
                break;
            }
        }
        let cost = cost_since(before);
        let bytes = receiving.machine.bytes;
        let end = FlowEnd {
            bytes,
            bytes_measured: bytes,
            span_ns: receiving.last.nanos_since(receiving.begin),
            io_calls: calls,
            cpu_user_ns: cost.user_ns,
            cpu_system_ns: cost.system_ns,
            technique: "recvmmsg".to_owned(),
            ..FlowEnd::default()
        };
        Ok((peer, end, receiving.over))
    }

    /// The first datagram: its sender and its length.
    fn first(&self, stop: &Stop) -> Result<(SocketAddr, usize), Failure> {
        let mut bytes = vec![0; BUFFER_BYTES];
        while !stop.asked() {
            if !readable(&self.socket, LOOK).unwrap_or(false) {
                continue;
            }
            if let Ok(Some((length, peer))) = self.socket.receive_from(&mut bytes) {
                return Ok((peer, length));
            }
        }
        let reason = "stopped before anything came";
        Err(Failure::new(Fault::Unreachable, "hear from", "a transmitter", reason))
    }
}

impl Receiving {
    fn take(&mut self, length: usize, now: MonoTime) {
        // What comes behind the end is the end again.
        if self.over {
            return;
        }
        match self.machine.take(length) {
            Received::Begin => self.begin = now,
            Received::Data(_) => {}
            Received::End | Received::Late => self.over = true,
        }
        self.last = now;
    }
}
