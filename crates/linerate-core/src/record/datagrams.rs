//! What the ends of a UDP stream counted: datagrams by their numbers.
//!
//! A datagram belongs to the measured span by the time at which it was sent, which it carries; so
//! both ends mean the same datagrams, and sent = received + lost holds to the last one.

use serde::{Deserialize, Serialize};

/// Datagrams that a sender handed to its kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentDatagrams {
    /// Payload bytes of each datagram.
    pub size_bytes: u32,
    /// Number of all datagrams, numbered from 0.
    pub count: u64,
    /// Datagrams sent after the omitted span.
    pub measured: u64,
    /// Datagrams that were sent together with others in one buffer, for the kernel or the card to
    /// cut (UDP_SEGMENT).
    pub joined: u64,
    /// The most in one buffer.
    pub joined_max: u32,
    /// Evenness of the gaps between sends; null without a pace.
    pub pace: Option<PaceKept>,
    /// Time for which the sender waited because the receiver's socket had no room; null where no
    /// receiver reports it, and with a pace.
    #[serde(default)]
    pub held_ns: Option<u64>,
    /// Measured datagrams that this host's own interface refused: the send call failed with
    /// ENOBUFS. They count as sent. Null where nobody asked.
    #[serde(default)]
    pub refused: Option<u64>,
    /// Buffers that it refused, each of one datagram or of several joined ones; those among them
    /// that it took when they were sent again. Null where nobody asked.
    #[serde(default)]
    pub refusals: Option<u64>,
    /// Packets that the queueing discipline and the driver of this host's interface dropped
    /// meanwhile, by their own counters: those of every program, joined datagrams as one packet.
    /// Null where they do not tell, and for datagrams that leave in fragments.
    #[serde(default)]
    pub interface_drops: Option<u64>,
}

/// The part that keeps the pace: this program or the kernel's qdisc.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PacedBy {
    /// The sender, which sleeps until each batch is due.
    #[default]
    UserSpace,
    /// The kernel's queueing discipline fq, which holds each buffer until the time that the sender
    /// gave it (SO_TXTIME).
    Fq,
}

/// Evenness of a paced sender, by its own clock just before each call; by the times that it gave to
/// the kernel where that paces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaceKept {
    /// The part that kept the pace: this program or the kernel's qdisc.
    #[serde(default)]
    pub paced_by: PacedBy,
    /// Datagrams of one batch, which leave one right after the other.
    pub batch: u32,
    /// Time from a batch to the next, median.
    pub gap_p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub gap_p99_ns: Option<u64>,
    /// Largest of the same.
    pub gap_max_ns: Option<u64>,
    /// Payload of the busiest millisecond over that of the mean one.
    pub busiest_1ms_ratio: Option<f64>,
    /// Payload of the busiest 10 ms over that of the mean ones.
    pub busiest_10ms_ratio: Option<f64>,
    /// Time by which the schedule was set back, because the sender was too late to make up for it.
    pub forgiven_ns: u64,
}

/// Datagrams that a receiver read, counted and judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReceivedDatagrams {
    /// Payload bytes of each datagram.
    pub size_bytes: u32,
    /// Counts over all datagrams.
    pub all: DatagramTally,
    /// Counts over the datagrams sent after the omitted span.
    pub measured: DatagramTally,
    /// Datagrams that are not of this stream, too short, or of another length. They count nowhere
    /// else.
    pub strays: u64,
    /// Datagrams that arrived with others in one buffer: never cut apart on the way, or joined
    /// again by this host (UDP_GRO).
    pub joined: u64,
    /// The most in one buffer; 1 where each arrived alone, 0 where none arrived or nobody looked.
    #[serde(default)]
    pub joined_max: u32,
    /// Buffers that the socket did not take for want of room, as the kernel counts them.
    pub socket_drops: Option<u64>,
    /// Variation of the one-way delay.
    pub delay: Option<DelayVariation>,
}

/// Datagrams of one span. When `sent` is known, sent = received + lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatagramTally {
    /// Datagrams sent, as the sender reported at its end; null when it did not.
    pub sent: Option<u64>,
    /// Different ones that arrived.
    pub received: u64,
    /// Sent and not received; up to the highest number that arrived where `sent` is null.
    pub lost: u64,
    /// Lost datagrams for which this host's own socket buffer had no room.
    pub lost_here: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Arrivals below a number that had arrived before, duplicates left out.
    pub reordered: u64,
    /// Arrivals too far below the highest number to tell whether they are duplicates; they count
    /// as lost.
    pub too_old: u64,
}

/// Delay variation of one stream. The clocks of the ends need not agree: only differences count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayVariation {
    /// Arrivals that were looked at: the first of each batch.
    pub n: u64,
    /// Smoothed difference of neighbours (RFC 3550 §6.4.1) at the end.
    pub jitter_ns: Option<u64>,
    /// Delay above the smallest one (RFC 5481 §4.2), median.
    pub pdv_p50_ns: Option<u64>,
    /// 99th percentile of the same.
    pub pdv_p99_ns: Option<u64>,
    /// Largest of the same.
    pub pdv_max_ns: Option<u64>,
    /// True when arrivals are the kernel's timestamps, false when they are the program's own.
    pub kernel_stamps: bool,
}
