//! What one end knows of a stream at one moment, and its forms in the native protocol.

use linerate_core::record::{DatagramCounts, Direction};
use linerate_proto::native::{FlowSample, UdpSample};

/// One stream at one end at one moment. Counters run from the start of the test.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Which way the stream's data goes.
    pub direction: Direction,
    /// Stream number within its direction.
    pub flow: u16,
    /// Time since this end's start.
    pub t_ns: u64,
    /// Payload bytes so far: sent by a sender, received by a receiver.
    pub bytes: u64,
    /// Segments retransmitted so far.
    pub retransmits: Option<u64>,
    /// The sender's congestion window in bytes.
    pub cwnd_bytes: Option<u64>,
    /// The kernel's smoothed round-trip time.
    pub rtt_ns: Option<u64>,
    /// Mean deviation of the round-trip time.
    pub rtt_var_ns: Option<u64>,
    /// Window that the peer offers.
    pub send_window_bytes: Option<u64>,
    /// Window that this end advertises.
    pub receive_window_bytes: Option<u64>,
    /// The kernel's delivery rate in bit/s.
    pub delivery_rate_bps: Option<u64>,
    /// The kernel's path MTU in bytes.
    pub pmtu_bytes: Option<u32>,
    /// Datagrams so far; none over TCP.
    pub datagrams: Option<DatagramCounts>,
    /// Processor time of the stream's data thread so far.
    pub cpu_ns: Option<u64>,
    /// Time so far that this thread waited for a processor.
    pub run_queue_wait_ns: Option<u64>,
    /// Time so far that it waited in a call that writes or reads; none over UDP.
    pub blocked_ns: Option<u64>,
    /// Time so far that it slept to keep a pace; none over UDP.
    pub asleep_ns: Option<u64>,
    /// Further values that the kernel tells of a TCP connection, in the order of
    /// `flow::tcp::signals`.
    pub signals: Vec<Option<u64>>,
}

impl Sample {
    /// The sample of a stream of which nothing is known yet at this time.
    pub const fn empty_at(direction: Direction, flow: u16, t_ns: u64) -> Self {
        Self {
            direction,
            flow,
            t_ns,
            bytes: 0,
            retransmits: None,
            cwnd_bytes: None,
            rtt_ns: None,
            rtt_var_ns: None,
            send_window_bytes: None,
            receive_window_bytes: None,
            delivery_rate_bps: None,
            pmtu_bytes: None,
            datagrams: None,
            cpu_ns: None,
            run_queue_wait_ns: None,
            blocked_ns: None,
            asleep_ns: None,
            signals: Vec::new(),
        }
    }

    /// The same with counts of datagrams of `size_bytes`.
    #[must_use]
    pub fn with_datagrams(self, counts: DatagramCounts, size_bytes: u32) -> Self {
        let bytes = counts.datagrams.saturating_mul(size_bytes.into());
        Self { bytes, datagrams: Some(counts), ..self }
    }

    /// Datagrams so far; all zero over TCP.
    pub fn counts(&self) -> DatagramCounts {
        self.datagrams.unwrap_or_default()
    }

    /// True where both samples are of one stream.
    pub fn is_of(&self, other: &Self) -> bool {
        (self.direction, self.flow) == (other.direction, other.flow)
    }

    /// The sample that a server of the native protocol tells of a UDP stream, whose datagrams have
    /// a size.
    pub(crate) fn of_udp(told: &UdpSample, size_bytes: u32) -> Self {
        let UdpSample { direction, flow, t_ns, counts, cpu_ns, run_queue_wait_ns } = *told;
        let sample = Self { cpu_ns, run_queue_wait_ns, ..Self::empty_at(direction, flow, t_ns) };
        sample.with_datagrams(counts, size_bytes)
    }
}

impl From<FlowSample> for Sample {
    fn from(told: FlowSample) -> Self {
        Self {
            bytes: told.bytes,
            retransmits: told.retransmits,
            cwnd_bytes: told.cwnd_bytes,
            rtt_ns: told.rtt_ns,
            rtt_var_ns: told.rtt_var_ns,
            send_window_bytes: told.send_window_bytes,
            receive_window_bytes: told.receive_window_bytes,
            delivery_rate_bps: told.delivery_rate_bps,
            pmtu_bytes: told.pmtu_bytes,
            cpu_ns: told.cpu_ns,
            run_queue_wait_ns: told.run_queue_wait_ns,
            blocked_ns: told.blocked_ns,
            asleep_ns: told.asleep_ns,
            signals: told.signals,
            ..Self::empty_at(told.direction, told.flow, told.t_ns)
        }
    }
}

impl From<Sample> for FlowSample {
    fn from(sample: Sample) -> Self {
        Self {
            direction: sample.direction,
            flow: sample.flow,
            t_ns: sample.t_ns,
            bytes: sample.bytes,
            retransmits: sample.retransmits,
            cwnd_bytes: sample.cwnd_bytes,
            rtt_ns: sample.rtt_ns,
            send_window_bytes: sample.send_window_bytes,
            receive_window_bytes: sample.receive_window_bytes,
            delivery_rate_bps: sample.delivery_rate_bps,
            rtt_var_ns: sample.rtt_var_ns,
            pmtu_bytes: sample.pmtu_bytes,
            cpu_ns: sample.cpu_ns,
            run_queue_wait_ns: sample.run_queue_wait_ns,
            blocked_ns: sample.blocked_ns,
            asleep_ns: sample.asleep_ns,
            signals: sample.signals,
        }
    }
}

impl From<Sample> for UdpSample {
    fn from(sample: Sample) -> Self {
        Self {
            direction: sample.direction,
            flow: sample.flow,
            t_ns: sample.t_ns,
            counts: sample.counts(),
            cpu_ns: sample.cpu_ns,
            run_queue_wait_ns: sample.run_queue_wait_ns,
        }
    }
}
