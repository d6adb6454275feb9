//! A TCP and its host as the simulation has them, and as plans and records write them.

use std::time::Duration;

use crate::record::{ControlName, LossRecovery, SimulatedTcp};

/// A TCP and its host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpModel {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// IP and TCP headers of each packet.
    pub header_bytes: u32,
    /// Algorithm of the congestion window.
    pub congestion_control: CongestionControl,
    /// Algorithm that repairs losses.
    pub recovery: LossRecovery,
    /// Segments in the first flight (10 in RFC 6928, 2 in RFC 2581).
    pub initial_window: u32,
    /// Most segments that one acknowledgement counts for when the window grows: 1 counts
    /// acknowledgements (RFC 5681 §3.1), more counts the segments that they cover (RFC 3465).
    pub growth_per_ack: u32,
    /// Slow start ends early, before it has filled the queue.
    pub hystart: bool,
    /// Segments leave in pieces of a millisecond (segmentation offload).
    pub offload: bool,
    /// Window that the receiver offers.
    pub window_bytes: u64,
    /// The sender's buffer (SO_SNDBUF as the kernel has it); none is one that never binds.
    pub send_buffer_bytes: Option<u64>,
    /// Segments after which an acknowledgement is sent (2 in RFC 5681 §4.2).
    pub ack_every: u32,
    /// Longest wait of an acknowledgement (RFC 5681 §4.2: below 500 ms).
    pub ack_delay: Duration,
    /// Shortest retransmission time-out (1 s in RFC 6298 §2.4, 200 ms in Linux).
    pub rto_min: Duration,
}

impl TcpModel {
    /// Linux of today with CUBIC, HyStart, RACK-TLP and segmentation offload: RFC 6928, RFC 3465
    /// without limit, 200 ms.
    pub const TODAY: Self = Self {
        mss_bytes: 1448,
        header_bytes: 52,
        congestion_control: CongestionControl::CUBIC,
        recovery: LossRecovery::Rack,
        initial_window: 10,
        growth_per_ack: u32::MAX,
        hystart: true,
        offload: true,
        window_bytes: 1 << 30,
        send_buffer_bytes: None,
        ack_every: 2,
        ack_delay: Duration::from_millis(40),
        rto_min: Duration::from_millis(200),
    };

    /// A host of 1999: Reno, two segments at first, a window of 2 MB, a second to time out,
    /// acknowledgements counted, packets of 9180 bytes with timestamps.
    pub const OF_1999: Self = Self {
        mss_bytes: 9128,
        congestion_control: CongestionControl::RENO,
        recovery: LossRecovery::Reno,
        initial_window: 2,
        growth_per_ack: 1,
        hystart: false,
        offload: false,
        window_bytes: 2_000_000,
        ack_delay: Duration::from_millis(200),
        rto_min: Duration::from_secs(1),
        ..Self::TODAY
    };
}

/// A congestion control with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CongestionControl {
    /// Additive increase of one segment each round trip, times `beta` on a loss (RFC
    /// 5681).
    Reno {
        /// Share of the window that is left after a loss.
        beta: f64,
    },
    /// Growth by the cube of the time since the last loss (RFC 9438).
    Cubic {
        /// Share of the window that is left after a loss.
        beta: f64,
        /// Scale, in segments per cubic second.
        scale: f64,
    },
    /// Pacing at the delivery rate, version 1 as in Linux.
    Bbr,
}

impl From<ControlName> for CongestionControl {
    fn from(name: ControlName) -> Self {
        match name {
            ControlName::Reno => Self::RENO,
            ControlName::Cubic => Self::CUBIC,
            ControlName::Bbr => Self::Bbr,
        }
    }
}

impl From<CongestionControl> for ControlName {
    fn from(control: CongestionControl) -> Self {
        match control {
            CongestionControl::Reno { .. } => Self::Reno,
            CongestionControl::Cubic { .. } => Self::Cubic,
            CongestionControl::Bbr => Self::Bbr,
        }
    }
}

impl CongestionControl {
    /// Reno as of RFC 5681, which keeps half of the window.
    pub const RENO: Self = Self::Reno { beta: 0.5 };
    /// RFC 9438 §4.6, §5: 0.7 and 0.4.
    pub const CUBIC: Self = Self::Cubic { beta: 0.7, scale: 0.4 };

    /// Name of the congestion control, as in plans and records.
    pub fn name(self) -> &'static str {
        ControlName::from(self).name()
    }

    pub(super) const fn decrease_factor(self) -> f64 {
        match self {
            Self::Reno { beta } | Self::Cubic { beta, .. } => beta,
            Self::Bbr => 1.0,
        }
    }
}

impl From<&TcpModel> for SimulatedTcp {
    fn from(tcp: &TcpModel) -> Self {
        let growth = tcp.growth_per_ack;
        Self {
            congestion_control: tcp.congestion_control.into(),
            recovery: tcp.recovery,
            mss_bytes: tcp.mss_bytes,
            header_bytes: tcp.header_bytes,
            initial_window_segments: tcp.initial_window,
            growth_per_ack_segments: (growth != u32::MAX).then_some(growth),
            hystart: tcp.hystart,
            segmentation_offload: tcp.offload,
            window_bytes: tcp.window_bytes,
            send_buffer_bytes: tcp.send_buffer_bytes,
            ack_every_segments: tcp.ack_every,
            ack_delay_ns: duration_nanos(tcp.ack_delay),
            rto_min_ns: duration_nanos(tcp.rto_min),
        }
    }
}

impl From<&SimulatedTcp> for TcpModel {
    fn from(tcp: &SimulatedTcp) -> Self {
        Self {
            mss_bytes: tcp.mss_bytes,
            header_bytes: tcp.header_bytes,
            congestion_control: CongestionControl::from(tcp.congestion_control),
            recovery: tcp.recovery,
            initial_window: tcp.initial_window_segments,
            growth_per_ack: tcp.growth_per_ack_segments.unwrap_or(u32::MAX),
            hystart: tcp.hystart,
            offload: tcp.segmentation_offload,
            window_bytes: tcp.window_bytes,
            send_buffer_bytes: tcp.send_buffer_bytes,
            ack_every: tcp.ack_every_segments,
            ack_delay: Duration::from_nanos(tcp.ack_delay_ns),
            rto_min: Duration::from_nanos(tcp.rto_min_ns),
        }
    }
}

fn duration_nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_gives_back_the_tcp_that_it_was_made_from() {
        for tcp in [TcpModel::TODAY, TcpModel::OF_1999] {
            let plan = SimulatedTcp::from(&tcp);
            let json = crate::tree::to_json(&plan).expect("it serialises");
            let again: SimulatedTcp = crate::tree::from_json(&json).expect("and parses");
            assert_eq!(TcpModel::from(&again), tcp, "{json}");
        }
    }

    #[test]
    fn names_are_those_of_the_command() {
        let json = crate::tree::to_value(SimulatedTcp::from(&TcpModel::OF_1999)).expect("JSON");
        assert_eq!(
            (&json["congestion_control"], &json["recovery"]),
            (&"reno".into(), &"reno".into())
        );
        assert_eq!(json["growth_per_ack_segments"], 1);
    }
}
