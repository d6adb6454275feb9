//! A stream of datagrams with marks around its data, to a server of nuttcp or ttcp.

use std::net::SocketAddr;

use linerate_core::record::{Direction, EndReport, Event, Failure, UdpPlan, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::native::Token;
use linerate_proto::ttcp::TtcpMarks;
use linerate_sys::datagram_socket::DatagramSocket;

use crate::context::Context;
use crate::flow::Sample;
use crate::flow::account::{Account, client_side};
use crate::flow::peer::bind_address;
use crate::flow::peer::plain_address;
use crate::flow::udp::endpoint::{Endpoint, StreamId, open_socket};
use crate::flow::udp::layout::DatagramLayout;
use crate::socket_address::local_towards;

/// A plan, where it leads, and how its datagrams look.
pub(super) struct StreamTarget<'a> {
    pub(super) plan: &'a UdpPlan,
    pub(super) server: SocketAddr,
    pub(super) request: &'a UdpTest,
    /// The program at the other end.
    pub(super) name: &'static str,
    pub(super) layout: DatagramLayout,
}

/// The stream of a test.
pub(super) struct MarkedStream<'a> {
    pub(super) target: StreamTarget<'a>,
    pub(super) endpoint: Endpoint,
    /// Until the stream is there.
    pub(super) socket: Option<DatagramSocket>,
    /// The marks that this end sends, as long as there are any.
    pub(super) marks: Option<TtcpMarks>,
}

impl<'a> MarkedStream<'a> {
    /// Opens a socket for the stream.
    pub(super) fn with_open_socket(
        target: StreamTarget<'a>,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let StreamTarget { plan, server, request, .. } = target;
        account.begin_datagrams(server, request);
        let local = bind_address(plan.server.bind.as_deref())?;
        let local = local_towards(server, local);
        let socket = open_socket(request, local).map_err(|error| crate::failure::system(&error))?;
        let endpoint = Endpoint::with_layout(request.clone(), target.layout, plan.cpu);
        Ok(Self { target, endpoint, socket: Some(socket), marks: None })
    }
}

impl MarkedStream<'_> {
    /// The server in words.
    pub(super) fn server(&self) -> String {
        plain_address(self.target.server)
    }

    /// Gives the socket to the endpoint and tells that the stream is there.
    pub(super) fn opened(
        &mut self,
        direction: Direction,
        peer: SocketAddr,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        let Some(socket) = self.socket.take() else { return Ok(()) };
        socket.connect(peer).map_err(|error| crate::failure::system(&error))?;
        let client_addr = socket.local_address().map_or_else(String::new, |addr| addr.to_string());
        account.route_mtu_bytes = socket.mtu_bytes();
        account.connected(direction, 0, &client_addr, peer);
        let place = StreamId { direction, flow: 0, side: client_side(direction), client_addr };
        self.endpoint.add(socket, place, Token([0; 16]));
        let StreamTarget { request, name, server, .. } = &self.target;
        let size = request.size_bytes;
        let line = format!("1 UDP stream to {server}, {name}, datagrams of {size} bytes");
        (context.watch)(&Event::Connected(line));
        Ok(())
    }

    /// Starts the threads of the data.
    pub(super) fn start_threads(&mut self, begin: MonoTime) -> Result<(), Failure> {
        let receiving = self.endpoint.start_receivers();
        let started = receiving.and_then(|()| self.endpoint.start_senders(begin));
        started.map_err(|error| crate::failure::system(&error))
    }

    /// Sends a mark that is due. An error is that of a mark before: it is told once, and this one
    /// leaves.
    pub(super) fn send_due(&mut self, now: MonoTime) {
        if let Some(marks) = &mut self.marks {
            send_due(marks, now, &self.endpoint);
        }
    }

    /// True where every mark is sent, and all data.
    pub(super) fn is_done(&self) -> bool {
        self.marks.is_none_or(|marks| marks.is_over()) && self.endpoint.is_done()
    }

    /// Samples without a jitter, for the datagrams carry no time.
    pub(super) fn samples(&self, now: MonoTime) -> Vec<Sample> {
        let mut samples = self.endpoint.sample(now);
        let counts = samples.iter_mut().filter_map(|sample| sample.datagrams.as_mut());
        counts.for_each(|counts| counts.jitter_ns = None);
        samples
    }

    /// Ends the threads; their reports, without delays.
    pub(super) fn end_threads(&mut self) -> Vec<EndReport> {
        let StreamTarget { request, layout, .. } = &self.target;
        let empty = Endpoint::with_layout((*request).clone(), *layout, None);
        let mut reports = std::mem::replace(&mut self.endpoint, empty).finish();
        for report in &mut reports {
            if let Some(received) = &mut report.end.received_datagrams {
                received.delay = None;
            }
        }
        reports
    }
}

/// Sends a mark that is due on every stream of an endpoint. An error is that of a mark before: it
/// is told once, and this one leaves.
pub(super) fn send_due(marks: &mut TtcpMarks, now: MonoTime, endpoint: &Endpoint) {
    let Some(mark) = marks.next_due_mark(now) else { return };
    for socket in endpoint.sockets() {
        if socket.send_when_room(&mark).is_err() {
            let _ = socket.send_when_room(&mark);
        }
    }
}
