//! What a server sends over UDP: on the client's stream (`-R`, `--full-duplex`), where nobody
//! reports, or on one of its own (`-d`, `-r`), where the client does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_core::record::{Direction, Failure, Finish, Side};
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::{ClientHeader, FIRST_BYTES_MIN, Mode, UdpReport, UdpSender, pattern};
use linerate_proto::native::Token;
use linerate_sys::clock::monotonic;
use linerate_sys::datagram_socket::{DatagramSocket, any_local};

use super::address_validation::{Bounds, RESERVE};
use super::udp_end;
use super::udp_layout::{LAYOUT, LAYOUT_FROM_SECOND, sending, wall_us};
use crate::flow::udp::endpoint::{Endpoint, StreamId, open_socket};

/// The end is told so often to a client that does not answer it.
const ENDS: u64 = 3;

/// A stream to a client.
pub(super) struct Back {
    endpoint: Endpoint,
    socket: DatagramSocket,
    head: Vec<u8>,
    size_bytes: u32,
    begin: MonoTime,
    /// Datagrams that it is to send, where their number ends it.
    planned: Option<u64>,
    /// The client makes a report. Its first datagram was sent beforehand.
    reports: bool,
    /// Datagrams of all that the client was granted, and those that are left of them; where it is
    /// sent in proportion to what comes.
    granted: Option<(u64, Arc<AtomicU64>)>,
}

/// What a server sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpSentBack {
    /// Datagrams, the end among them.
    pub datagrams: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Time of sending.
    pub span_ns: u64,
    /// What the client says, where it makes a report.
    pub report: Option<UdpReport>,
}

impl Back {
    /// Begins to send what the header asks for, on the client's own stream.
    pub(super) fn on(
        socket: DatagramSocket,
        header: &ClientHeader,
        bounds: Bounds,
    ) -> Result<Self, Failure> {
        Self::start(socket, (header, bounds), false)
    }

    /// The same on a stream of its own, to the port where the client listens.
    pub(super) fn to(
        client: SocketAddr,
        header: &ClientHeader,
        bounds: Bounds,
    ) -> Result<Self, Failure> {
        let to = SocketAddr::new(client.ip(), header.listen_port);
        let socket = open_socket(&sending(header)?, any_local(to))
            .and_then(|socket| socket.connect(to).map(|()| socket));
        Self::start(socket.map_err(|error| crate::failure::system(&error))?, (header, bounds), true)
    }

    fn start(
        socket: DatagramSocket,
        (header, bounds): (&ClientHeader, Bounds),
        reports: bool,
    ) -> Result<Self, Failure> {
        let mut request = sending(header)?;
        request.pace = request.pace.into_iter().chain(bounds.pace).min();
        let size_bytes = request.size_bytes;
        let head = head(header, monotonic());
        if reports {
            let most = bounds.granted.map_or(u64::MAX, |_| RESERVE / 2);
            udp_end::begin(&socket, (&head, size_bytes as usize), most);
            if let Finish::Bytes(bytes) = &mut request.finish {
                *bytes = bytes.saturating_sub(size_bytes.into());
            }
        }
        let begin = monotonic();
        let layout = if reports { LAYOUT_FROM_SECOND } else { LAYOUT };
        let granted = bounds.granted.map(|granted| {
            let granted = granted.min(request.datagram_budget().unwrap_or(u64::MAX));
            (granted, Arc::new(AtomicU64::new(granted)))
        });
        let planned = request.datagram_budget();
        let mut endpoint = Endpoint::with_layout(request, layout, None);
        if let Some((_, left)) = &granted {
            endpoint.allow(Arc::clone(left));
        }
        endpoint.begin_with(&head);
        let fail = |error: linerate_sys::Error| crate::failure::system(&error);
        let own = socket.try_clone().map_err(fail)?;
        let direction = Direction::Down;
        let place = StreamId { direction, flow: 0, side: Side::Sender, client_addr: String::new() };
        endpoint.add(own, place, Token([0; 16]));
        endpoint.start_senders(begin).map_err(fail)?;
        Ok(Self { endpoint, socket, head, size_bytes, begin, reports, planned, granted })
    }

    /// What was sent until now.
    pub(super) fn so_far(&self) -> UdpSentBack {
        let now = monotonic();
        let samples = self.endpoint.sample(now);
        let datagrams =
            samples.first().map_or(0, |sample| sample.counts().datagrams) + self.before();
        UdpSentBack {
            datagrams,
            bytes: datagrams * u64::from(self.size_bytes),
            span_ns: now.nanos_since(self.begin),
            report: None,
        }
    }

    /// Datagrams that were sent before the others.
    fn before(&self) -> u64 {
        u64::from(self.reports)
    }

    /// Lets it send `all` datagrams, where it is sent what it is granted.
    pub(super) fn grant(&mut self, all: u64) {
        let all = all.min(self.planned.unwrap_or(u64::MAX));
        if let Some((granted, left)) = &mut self.granted {
            left.fetch_add(all.saturating_sub(*granted), Ordering::Relaxed);
            *granted = all.max(*granted);
        }
    }

    /// Length of its datagrams.
    pub(super) const fn size_bytes(&self) -> u32 {
        self.size_bytes
    }

    /// Sends no more.
    pub(super) fn stop(&self) {
        self.endpoint.stop_sending();
    }

    /// Whether everything was sent.
    pub(super) fn is_done(&self) -> bool {
        self.endpoint.is_done()
    }

    /// Says the end, and waits for the client's report where it makes one.
    pub(super) fn finish(self) -> Result<UdpSentBack, Failure> {
        let most = self.granted.as_ref().map_or(u64::MAX, |_| RESERVE / 2);
        let about = (self.head.as_slice(), self.size_bytes as usize);
        let sent = self.endpoint.sent().unwrap_or_default();
        let (count, span_ns) = sent.first().map_or((0, 0), |sent| (sent.datagrams, sent.span_ns));
        let count = count + self.before();
        let report = match self.reports {
            true => udp_end::ask_reports(&[(&self.socket, count)], about, most).pop().flatten(),
            false => {
                udp_end::tell(&self.socket, count, about, most.min(ENDS));
                None
            }
        };
        let failure = self.endpoint.finish().into_iter().find_map(|report| report.failure);
        if let Some(reason) = failure {
            let fault = linerate_core::record::Fault::Unreachable;
            return Err(Failure::new(fault, "send UDP to", "an iperf 2 client", reason));
        }
        let datagrams = count + 1;
        let bytes = datagrams * u64::from(self.size_bytes);
        Ok(UdpSentBack { datagrams, bytes, span_ns, report })
    }
}

/// What the datagrams begin with: digits, and with trip times a header that says so.
fn head(asked: &ClientHeader, begin: MonoTime) -> Vec<u8> {
    if asked.trip_times.is_none() {
        return pattern(FIRST_BYTES_MIN);
    }
    let mode = if asked.mode == Mode::FullDuplex { asked.mode } else { Mode::Forward };
    let trip_times = Some(wall_us(begin));
    UdpSender::new(ClientHeader { trip_times, mode, ..*asked }).head()
}
