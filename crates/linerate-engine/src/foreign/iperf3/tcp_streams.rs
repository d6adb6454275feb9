//! The TCP streams of either end of a test.

use linerate_core::record::{EndReport, Failure, Side, TcpTest};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::FlowState;
use linerate_proto::iperf3::Params;
use linerate_sys::tcp::TcpOptions;

use super::plan::burst_of;
use super::report::{StreamKey, places};
use crate::flow::Sample;
use crate::flow::tcp::endpoint::{Endpoint, socket_options};

/// The streams of one end.
pub(super) struct TcpStreams {
    pub(super) request: TcpTest,
    pub(super) places: Vec<StreamKey>,
    pub(super) endpoint: Endpoint,
    /// Bytes that a sender's stream begins with and that do not count.
    head_bytes: u64,
    /// What was counted of each stream when the omitted span ended, and at the end of the test.
    pub(super) omitted: Vec<Sample>,
    pub(super) ended: Vec<Sample>,
}

impl TcpStreams {
    pub(super) fn new(request: TcpTest, params: &Params, head_bytes: usize) -> Self {
        let endpoint = Endpoint::of_iperf3(request.clone())
            .in_bursts(burst_of(params))
            .paced_by_kernel(params.fq_rate_bps);
        Self {
            places: places(request.each_direction(), request.streams),
            request,
            endpoint,
            head_bytes: head_bytes as u64,
            omitted: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The options of a stream's socket at an end that has this side of it.
    pub(super) fn options(&self, side: Side) -> TcpOptions {
        match side {
            Side::Sender => socket_options(&self.request),
            Side::Receiver => {
                TcpOptions { congestion_control: None, ..socket_options(&self.request) }
            }
        }
    }

    /// Makes ready what is sent.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        self.endpoint.prepare().map_err(|error| crate::failure::system(&error))
    }

    pub(super) fn start(&mut self, begin: MonoTime) -> Result<(), Failure> {
        self.endpoint.start(begin).map_err(|error| crate::failure::system(&error))
    }

    /// What the other end's kernel has acknowledged of what this end sent.
    pub(super) fn acknowledged(&self, now: MonoTime) -> Vec<Sample> {
        self.endpoint.acknowledged(now, self.head_bytes)
    }

    /// What every stream has moved, and what was acknowledged.
    pub(super) fn sample(&mut self, now: MonoTime) -> (Vec<Sample>, Vec<Sample>) {
        let acknowledged = self.acknowledged(now);
        (self.endpoint.sample(now), acknowledged)
    }

    pub(super) fn state(&self) -> FlowState {
        let received = self.endpoint.received();
        FlowState {
            received,
            moved: self.endpoint.moved(),
            done: self.endpoint.is_done(),
            ..FlowState::default()
        }
    }

    /// Ends every thread and tells what it did.
    pub(super) fn finish(&mut self) -> Vec<EndReport> {
        self.endpoint.halt();
        let none = Endpoint::new(self.request.clone());
        std::mem::replace(&mut self.endpoint, none).finish()
    }
}
