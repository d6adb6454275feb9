//! The TCP streams of either end of a test.

use linerate_core::record::{EndReport, Failure, FlowSide, TcpTest};
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
    /// Bytes that a receiver's stream began with and that were read before it was added.
    read_bytes: u64,
    /// Bytes that had come of each stream before the test began at this end, and does not count.
    pub(super) before: Vec<Sample>,
    /// The samples of each stream when the omitted span ended, and at the end of the test.
    pub(super) omitted: Vec<Sample>,
    pub(super) ended: Vec<Sample>,
}

impl TcpStreams {
    /// The streams of an end that begins each with `head_bytes`, or has read `read_bytes` of it.
    pub(super) fn new(
        request: TcpTest,
        params: &Params,
        [head_bytes, read_bytes]: [usize; 2],
    ) -> Self {
        let endpoint = Endpoint::of_iperf3(request.clone())
            .in_bursts(burst_of(params))
            .paced_by_kernel(params.fq_rate_bps);
        Self {
            places: places(request.each_direction(), request.streams),
            request,
            endpoint,
            head_bytes: head_bytes as u64,
            read_bytes: read_bytes as u64,
            before: Vec::new(),
            omitted: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// The options of a stream's socket at an end that has this side of it.
    pub(super) fn options(&self, side: FlowSide) -> TcpOptions {
        match side {
            FlowSide::Sender => socket_options(&self.request),
            FlowSide::Receiver => {
                TcpOptions { congestion_control: None, ..socket_options(&self.request) }
            }
        }
    }

    /// Makes ready what is sent.
    pub(super) fn prepare(&mut self) -> Result<(), Failure> {
        self.endpoint.prepare().map_err(|error| crate::failure::system(&error))
    }

    pub(super) fn start_streams(&mut self, begin: MonoTime) -> Result<(), Failure> {
        self.endpoint.start_streams(begin).map_err(|error| crate::failure::system(&error))
    }

    /// The bytes of this end's senders that the other end's kernel has acknowledged.
    pub(super) fn acknowledged(&self, now: MonoTime) -> Vec<Sample> {
        self.endpoint.acknowledged(now, self.head_bytes)
    }

    /// Bytes that have come so far of every stream that this end receives, read or not.
    pub(super) fn arrived(&self, now: MonoTime) -> Vec<Sample> {
        self.endpoint.arrived(now, self.read_bytes)
    }

    /// Bytes that every stream has sent, or has brought since the test began, and what was
    /// acknowledged.
    pub(super) fn sample(&self, now: MonoTime) -> (Vec<Sample>, Vec<Sample>) {
        let (acknowledged, arrived) = (self.acknowledged(now), self.arrived(now));
        let mut samples = self.endpoint.sample(now);
        for came in arrived {
            let same = samples.iter_mut().find(|sample| sample.is_of(&came));
            let bytes = came.bytes.saturating_sub(bytes_of(&self.before, &came));
            same.into_iter().for_each(|sample| sample.bytes = bytes);
        }
        (samples, acknowledged)
    }

    pub(super) fn flow_state(&self) -> FlowState {
        let received = self.endpoint.received();
        FlowState {
            received,
            moved: self.endpoint.moved_bytes(),
            done: self.endpoint.is_done(),
            ..FlowState::default()
        }
    }

    /// A sample at whose time its stream brought all that `reports` have of it.
    pub(super) fn with_all_bytes(&self, sample: Sample, reports: &[EndReport]) -> Sample {
        let same = |it: &&EndReport| (it.direction, it.flow) == (sample.direction, sample.flow);
        let Some(report) = reports.iter().find(same) else { return sample };
        let bytes = report.end.bytes.saturating_sub(bytes_of(&self.before, &sample));
        Sample { bytes, ..sample }
    }

    /// Ends every thread and tells what it did.
    pub(super) fn finish(&mut self) -> Vec<EndReport> {
        self.endpoint.halt_streams();
        let none = Endpoint::new(self.request.clone());
        std::mem::replace(&mut self.endpoint, none).finish()
    }
}

/// The bytes that `samples` have of the stream of `sample`.
fn bytes_of(samples: &[Sample], sample: &Sample) -> u64 {
    samples.iter().find(|earlier| earlier.is_of(sample)).map_or(0, |sample| sample.bytes)
}
