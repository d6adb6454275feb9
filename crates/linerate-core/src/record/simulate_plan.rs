//! What is to be simulated, with every default filled in: TCP flows over an emulated path, by a
//! model and in virtual time. A plan alone repeats the simulation to the bit, on every machine.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Finish;
use crate::path::PathPlan;
use crate::simulate::{CongestionControl, ControlName, Recovery, TcpModel};
use crate::units::BitRate;

/// TCP flows from one end of a path to the other. All times are virtual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatePlan {
    /// The path, with the seed of all that is random. Data go forward, acknowledgements back.
    pub path: Box<PathPlan>,
    /// The path's place in a laboratory, the sender's end first: `a eth0 - b eth0`.
    pub place: Option<String>,
    /// The TCP of all flows.
    pub tcp: SimulatedTcp,
    /// Flows at once.
    pub streams: u32,
    /// When it ends: after a time, or when all flows together have sent so many bytes, each its
    /// part, rounded up.
    pub finish: Finish,
    /// Span at the start that is left out of the result.
    pub omit_ns: u64,
    /// The flows begin at random times within this span.
    pub start_spread_ns: u64,
    /// After this time a transfer is given up.
    pub time_max_ns: u64,
    /// Payload bit/s of a constant flow of full packets against the data; null is none.
    pub background: Option<BitRate>,
}

/// A model of TCP and its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SimulatedTcp {
    /// How the window grows and shrinks: Reno by RFC 5681, CUBIC by RFC 9438.
    pub congestion_control: ControlName,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// IP and TCP headers of each packet.
    pub header_bytes: u32,
    /// Segments in the first flight.
    pub initial_window_segments: u32,
    /// Most segments that one acknowledgement counts for when the window grows; null is what it
    /// covers.
    pub growth_per_ack_segments: Option<u32>,
    /// Slow start ends early, before it has filled the queue.
    pub hystart: bool,
    /// The receiver's window.
    pub window_bytes: u64,
    /// Segments after which an acknowledgement is sent.
    pub ack_every_segments: u32,
    /// Longest wait of an acknowledgement.
    pub ack_delay_ns: u64,
    /// Shortest retransmission time-out above the round trip.
    pub rto_min_ns: u64,
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
            window_bytes: tcp.window_bytes,
            ack_every_segments: tcp.ack_every,
            ack_delay_ns: nanos(tcp.ack_delay),
            rto_min_ns: nanos(tcp.rto_min),
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
            window_bytes: tcp.window_bytes,
            ack_every: tcp.ack_every_segments,
            ack_delay: Duration::from_nanos(tcp.ack_delay_ns),
            rto_min: Duration::from_nanos(tcp.rto_min_ns),
        }
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_gives_back_the_tcp_that_it_was_made_from() {
        for tcp in [TcpModel::TODAY, TcpModel::OF_1999] {
            let plan = SimulatedTcp::from(&tcp);
            let json = serde_json::to_string(&plan).expect("it serialises");
            let again: SimulatedTcp = serde_json::from_str(&json).expect("and parses");
            assert_eq!(TcpModel::from(&again), tcp, "{json}");
        }
    }

    #[test]
    fn names_are_those_of_the_command() {
        let json = serde_json::to_value(SimulatedTcp::from(&TcpModel::OF_1999)).expect("JSON");
        assert_eq!(
            (&json["congestion_control"], &json["recovery"]),
            (&"reno".into(), &"reno".into())
        );
        assert_eq!(json["growth_per_ack_segments"], 1);
    }
}
