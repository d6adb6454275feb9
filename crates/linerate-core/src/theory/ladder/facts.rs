//! What is known of a path, its ends and a transfer, each with where it is known from.
//!
//! Everything but the packet is optional: a rung is built from the facts that are there. The
//! command line fills this from flags; a measured record can fill it from what both ends saw.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::theory::framing::{SegmentHeaders, Transport};
use crate::theory::slow_start::{GROWTH_BYTES_COUNTED, INITIAL_WINDOW};
use crate::units::{BitRate, Bytes, Fraction, PacketRate};

/// A value and where it is known from.
#[derive(Clone, Debug, PartialEq)]
pub struct Known<T> {
    /// The value of the fact.
    pub value: T,
    /// `--window`, `SYN options`, `tbf qdisc on veth-a`.
    pub source: String,
}

impl<T> Known<T> {
    /// A value from the source `source`.
    pub fn new(value: T, source: impl Into<String>) -> Self {
        Self { value, source: source.into() }
    }
}

/// A full packet of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FullPacketLengths {
    /// Bytes that the application gave.
    pub payload_bytes: u32,
    /// The IP packet that carries them, without encapsulations.
    pub ip_bytes: u32,
    /// Headers of the packet.
    pub segment: SegmentHeaders,
}

impl FullPacketLengths {
    /// True for TCP, which has windows, acknowledgements and a start.
    pub fn is_tcp(&self) -> bool {
        self.segment.transport != Transport::Udp
    }

    /// Payload over IP packet.
    pub fn payload_share(&self) -> f64 {
        f64::from(self.payload_bytes) / f64::from(self.ip_bytes)
    }
}

/// Rates of the sender's link at each layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkFact {
    /// Name of the link: `oc12`, `1 Gbit/s`.
    pub name: String,
    /// Rate of the line, bit/s.
    pub line_bps: f64,
    /// IP packets that it carries, bit/s.
    pub ip_bps: f64,
    /// Payload that it carries, bit/s.
    pub payload_bps: f64,
    /// True when a layer of it is an estimate.
    pub estimate: bool,
}

/// Congestion control's response to losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Response {
    /// Response of Reno (RFC 5681).
    Reno,
    /// CUBIC's (RFC 9438), the default of Linux.
    #[default]
    Cubic,
    /// BBR's, version 1 as in Linux.
    Bbr,
}

impl Response {
    /// All, in the order of tables.
    pub const ALL: [Self; 3] = [Self::Reno, Self::Cubic, Self::Bbr];
}

/// Size or duration of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A transfer of so many bytes of payload.
    Bytes(Bytes),
    /// A transfer of this duration.
    Time(Duration),
}

/// The way back of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckPath {
    /// Acknowledgements that it carries, per second.
    pub acks_per_s: f64,
    /// Data segments that one of them answers.
    pub segments_per_ack: f64,
}

/// All known facts of a path and its ends.
#[derive(Clone, Debug, PartialEq)]
pub struct CeilingFacts {
    /// Lengths of a full packet.
    pub packet: FullPacketLengths,
    /// Connections that run beside each other; each has the windows and the loss below.
    pub flows: u32,
    /// Link of the sender.
    pub link: Option<LinkFact>,
    /// The narrowest link, as a rate of IP packets.
    pub capacity: Option<Known<BitRate>>,
    /// Sustained rate of a policer or shaper, in IP packets.
    pub sustained: Option<Known<BitRate>>,
    /// Packet rate of the slowest device.
    pub packet_rate: Option<Known<PacketRate>>,
    /// Round trip without queues.
    pub rtt: Option<Known<Duration>>,
    /// The largest window that the receiver advertises.
    pub window: Option<Known<Bytes>>,
    /// The kernel's limit of the send buffer.
    pub send_buffer: Option<Known<Bytes>>,
    /// Loss events per packet.
    pub loss: Option<Known<Fraction>>,
    /// The sender's response to losses.
    pub response: Response,
    /// Rate that the sending host's CPU can send.
    pub sender_host: Option<Known<BitRate>>,
    /// Rate that the receiving host's CPU can receive.
    pub receiver_host: Option<Known<BitRate>>,
    /// The transfer that is asked about.
    pub amount: Option<Known<Amount>>,
    /// Segments of the first round.
    pub initial_window: u32,
    /// Growth of the window in each round of the start.
    pub growth: f64,
    /// Rate that the application offers or reads in each flow.
    pub application: Option<Known<BitRate>>,
    /// Path of the acknowledgements.
    pub acks: Option<Known<AckPath>>,
}

impl CeilingFacts {
    /// Facts of the packet alone: one flow, CUBIC, today's initial window.
    pub const fn from_packet(packet: FullPacketLengths) -> Self {
        Self {
            packet,
            flows: 1,
            link: None,
            capacity: None,
            sustained: None,
            packet_rate: None,
            rtt: None,
            window: None,
            send_buffer: None,
            loss: None,
            response: Response::Cubic,
            sender_host: None,
            receiver_host: None,
            amount: None,
            initial_window: INITIAL_WINDOW,
            growth: GROWTH_BYTES_COUNTED,
            application: None,
            acks: None,
        }
    }
}
