//! The UDP streams of either end of a test.

use linerate_core::record::{Direction, EndReport, FlowSide, UdpTest};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::FlowState;
use linerate_proto::iperf3::Params;
use linerate_proto::native::Token;
use linerate_sys::datagram_socket::DatagramSocket;

use super::datagrams::count_sent_since;
use super::plan::burst_of;
use super::report::{StreamKey, count_told, places};
use crate::flow::Sample;
use crate::flow::udp::endpoint::{Endpoint, StreamId};
use crate::flow::udp::layout::DatagramLayout;

/// The streams of one end.
pub(super) struct UdpStreams {
    pub(super) request: UdpTest,
    pub(super) places: Vec<StreamKey>,
    pub(super) endpoint: Endpoint,
    layout: DatagramLayout,
    /// The samples at the end of the omitted span.
    pub(super) omitted: Vec<Sample>,
}

impl UdpStreams {
    pub(super) fn new(
        request: UdpTest,
        params: &Params,
        layout: DatagramLayout,
        cpu: Option<u32>,
    ) -> Self {
        let endpoint = Endpoint::with_layout(request.clone(), layout, cpu);
        Self {
            places: places(request.each_direction(), request.streams),
            endpoint: endpoint.in_bursts(burst_of(params)),
            request,
            layout,
            omitted: Vec::new(),
        }
    }

    /// Takes over the socket of a stream of which this end has a side.
    pub(super) fn add(
        &mut self,
        socket: DatagramSocket,
        place: &StreamKey,
        side: FlowSide,
        client_addr: String,
    ) {
        let place = StreamId { direction: place.direction, flow: place.flow, side, client_addr };
        self.endpoint.add(socket, place, Token([0; 16]));
    }

    /// How far the streams have come that this end receives from `direction`.
    pub(super) fn flow_state(&self, now: MonoTime, received: Direction) -> FlowState {
        let samples = self.endpoint.sample(now);
        let count = |direction: Direction| -> u64 {
            let of_way = samples.iter().filter(|sample| sample.direction == direction);
            of_way.map(|sample| sample.counts().next).sum()
        };
        let budget = self.request.datagram_budget().unwrap_or(0);
        FlowState {
            received: count(received),
            complete: self.request.each_direction().iter().all(|way| count(*way) >= budget),
            done: self.endpoint.is_done(),
            ..FlowState::default()
        }
    }

    /// True once the time of the test has passed since its `begin`, where time ends it.
    pub(super) fn is_over(&self, now: MonoTime, begin: MonoTime) -> bool {
        let planned = self.request.planned_span().filter(|_| self.is_by_time());
        planned.is_some_and(|planned| now.duration_since(begin) >= planned)
    }

    fn is_by_time(&self) -> bool {
        self.request.datagram_budget().is_none()
    }

    /// Makes the sums of `reports` those of the rows, whose intervals are `told`.
    pub(super) fn count_by_rows(&self, reports: &mut [EndReport], told: &[Vec<Sample>]) {
        let (omit_ns, size_bytes) = (self.request.omit_ns, self.request.size_bytes);
        if omit_ns > 0 && self.omitted.is_empty() {
            // It was stopped before that was over, and measured nothing.
            return;
        }
        let told = told.last().map(Vec::as_slice).unwrap_or_default();
        for report in reports {
            count_sent_since(report, &self.omitted, size_bytes);
            count_told(report, &self.omitted, told);
        }
    }

    /// Ends every thread and tells what it did.
    pub(super) fn finish(&mut self) -> Vec<EndReport> {
        let none = Endpoint::with_layout(self.request.clone(), self.layout, None);
        std::mem::replace(&mut self.endpoint, none).finish()
    }
}
