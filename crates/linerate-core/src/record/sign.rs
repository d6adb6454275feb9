//! Figures that a verdict rests on, as values: each kind with its unit, its value and what it was
//! held against.
//!
//! Left out: their names (`linerate-report`, `verdict/sign.rs`); thresholds (`explain`).

use serde::{Deserialize, Serialize};

use super::{Change, FlowSide};

/// How a value stands to its threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// At least the threshold.
    AtLeast,
    /// At most the threshold.
    AtMost,
}

/// The limit that a figure was held against.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Threshold {
    /// FlowSide of it that the figure is on.
    pub against: Against,
    /// In the figure's unit.
    pub value: f64,
}

/// A figure that a verdict rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Sign {
    /// Kind of figure, which has its unit.
    pub kind: SignKind,
    /// How much, in that unit.
    pub value: f64,
    /// Limit that it was held against; `None` for a figure without a threshold.
    pub threshold: Option<Threshold>,
}

impl Sign {
    /// A figure without a threshold.
    pub const fn figure(kind: SignKind, value: f64) -> Self {
        Self { kind, value, threshold: None }
    }

    /// A figure that is at least `limit`.
    pub const fn at_least(kind: SignKind, value: f64, limit: f64) -> Self {
        let threshold = Some(Threshold { against: Against::AtLeast, value: limit });
        Self { kind, value, threshold }
    }

    /// A figure that is at most `limit`.
    pub const fn at_most(kind: SignKind, value: f64, limit: f64) -> Self {
        let threshold = Some(Threshold { against: Against::AtMost, value: limit });
        Self { kind, value, threshold }
    }
}

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SignUnit {
    /// Bits each second.
    BitsPerSecond,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// A share, a ratio, or a plain number.
    Share,
    /// Packets.
    Packets,
    /// Packets each second.
    PacketsPerSecond,
    /// Events.
    Events,
    /// Flows.
    Flows,
    /// Segments.
    Segments,
    /// Intervals of the rate.
    Intervals,
}

impl SignUnit {
    /// Its symbol in JSON: `bit/s`, `ns`, `1` for a share.
    pub const fn json_symbol(self) -> &'static str {
        match self {
            Self::BitsPerSecond => "bit/s",
            Self::Bytes => "bytes",
            Self::Nanoseconds => "ns",
            Self::Share => "1",
            Self::Packets => "packets",
            Self::PacketsPerSecond => "packets/s",
            Self::Events => "events",
            Self::Flows => "flows",
            Self::Segments => "segments",
            Self::Intervals => "intervals",
        }
    }
}

macro_rules! sign_kinds {
    ($($(#[doc = $doc:literal])+ $variant:ident: $unit:ident;)*) => {
        /// Kind of a figure that a verdict rests on. A rule shows several: "that" and "it" are the
        /// figure before.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum SignKind {
            $($(#[doc = $doc])+ $variant,)*
            /// Payload that the interface of an end carries.
            InterfaceCarries {
                /// Name of the interface, where it is known.
                interface: Option<String>,
                /// Which end.
                side: FlowSide,
            },
            /// Payload that a queueing discipline of an end lets through.
            DisciplinePasses {
                /// Name of the interface, where it is known.
                interface: Option<String>,
                /// Which end.
                side: FlowSide,
            },
            /// CPU of an end, over the time.
            CpuUsed(FlowSide),
            /// Time that the thread of an end computed.
            ThreadComputed(FlowSide),
            /// Time that the thread of an end waited for a core.
            ThreadWaited(FlowSide),
            /// Rate with one thing changed over that without.
            RateWithChange(Change),
        }

        impl SignKind {
            /// Unit of its value.
            pub const fn unit(&self) -> SignUnit {
                match self {
                    $(Self::$variant => SignUnit::$unit,)*
                    Self::InterfaceCarries { .. } | Self::DisciplinePasses { .. } => {
                        SignUnit::BitsPerSecond
                    }
                    Self::CpuUsed(_)
                    | Self::ThreadComputed(_)
                    | Self::ThreadWaited(_)
                    | Self::RateWithChange(_) => SignUnit::Share,
                }
            }
        }
    };
}

sign_kinds! {
    /// Rate over the bound that stands before it.
    RateOverThat: Share;
    /// Rate over what the figure before it allows.
    RateOverAllowed: Share;
    /// Rate over the pace that stands before it.
    RateOverPace: Share;
    /// Rate over the highest rate of delivery that the sender saw.
    RateOverDelivery: Share;
    /// Rate over what a known link carries.
    RateOverLink: Share;
    /// Rate over what losses at random of that ratio would leave.
    RateOverRandomLoss: Share;
    /// Standard deviation of the rate over its mean.
    RateSpread: Share;
    /// Pace that the user asked for.
    PaceAsked: BitsPerSecond;
    /// Pace of reading that the user asked for.
    ReadPaceAsked: BitsPerSecond;
    /// The most that the program lets the kernel send.
    PaceAllowed: BitsPerSecond;
    /// Payload that the Ethernet of the nearest usual speed carries.
    EthernetCarries: BitsPerSecond;
    /// The same for the datagrams of the test.
    EthernetCarriesDatagrams: BitsPerSecond;
    /// Payload that arrived in all.
    PayloadArrived: Bytes;
    /// Intervals in which nothing moved.
    StillIntervals: Intervals;
    /// Round trips that the transfer took.
    RoundTripsTaken: Share;
    /// Round trip under load over that at rest.
    Inflation: Share;
    /// Round trip under load over the least that was seen.
    InflationOverLeast: Share;
    /// Least round trip at rest.
    RoundTripLeast: Nanoseconds;
    /// Longest round trip of the intervals over the shortest.
    RoundTripVaries: Share;
    /// Delay that the load adds on the way back.
    DelayAddedBack: Nanoseconds;
    /// Delay that the load adds on the way of the data.
    DelayAddedForward: Nanoseconds;
    /// Least delay that the queue adds.
    DelayAlwaysAdded: Nanoseconds;
    /// Receive window that the sender was offered.
    WindowOffered: Bytes;
    /// The same at the moment of the output.
    WindowOfferedNow: Bytes;
    /// Rate that a known receive window allows.
    WindowAllows: BitsPerSecond;
    /// In flight over the window that stands before it.
    FlightOverThatWindow: Share;
    /// In flight over the window that was offered.
    FlightOverWindow: Share;
    /// In flight over the congestion window.
    FlightOverCwnd: Share;
    /// In flight over the congestion window that stands before it.
    FlightOverIt: Share;
    /// In flight over the send buffer that stands before it.
    FlightOverBuffer: Share;
    /// Largest receive window over the smallest.
    WindowVaries: Share;
    /// Share of the intervals whose rate times round trip is the window.
    IntervalsAtWindow: Share;
    /// Largest congestion window over the smallest.
    CwndVaries: Share;
    /// Congestion window.
    Cwnd: Bytes;
    /// Congestion window of the first sample.
    CwndAtFirst: Bytes;
    /// Congestion window of the last sample.
    CwndAtLast: Bytes;
    /// Congestion window at last over that at first.
    CwndGrowth: Share;
    /// Round trips in which the congestion window did not grow.
    RoundsWithoutGrowth: Share;
    /// Send buffer that the kernel granted.
    SendBufferGranted: Bytes;
    /// Rate that a known send buffer allows.
    SendBufferAllows: BitsPerSecond;
    /// Memory of the send buffer in use, over what it may take.
    BufferMemoryUsed: Share;
    /// The same of one socket at one moment.
    SendMemoryUsed: Share;
    /// Time that the sender's thread slept of its own accord.
    SenderSlept: Share;
    /// Time that a sleeping sender was blocked in write().
    SenderBlocked: Share;
    /// Time that the sender was blocked in write().
    BlockedInWrite: Share;
    /// Time that the busiest thread computed or waited for a CPU.
    ComputedOrWaited: Share;
    /// Time that a CPU quota kept it from running.
    Throttled: Share;
    /// Time that the sender's kernel waited for the receiver's window.
    SenderWaitedForWindow: Share;
    /// Time that the sender's kernel waited for its send buffer.
    SenderWaitedForBuffer: Share;
    /// Ends that were busy, by the engine's own words.
    BusyEnds: Share;
    /// Received and not read.
    Unread: Bytes;
    /// Unread bytes over the room for them.
    UnreadOverRoom: Share;
    /// Written and not sent.
    Unsent: Bytes;
    /// Payload of a segment.
    SegmentSize: Bytes;
    /// Written and not acknowledged.
    SendQueue: Bytes;
    /// Time with something to send, over the life of the connection.
    TimeWithData: Share;
    /// Busy time that it waited for the receiver's window.
    BusyForWindow: Share;
    /// Busy time that it waited for its send buffer.
    BusyForBuffer: Share;
    /// Share of the segments that were sent again.
    SegmentsAgain: Share;
    /// Segments that were sent again.
    SegmentsAgainCount: Segments;
    /// Retransmissions that were not needed, over all.
    RetransmitsNeedless: Share;
    /// Retransmission time-outs of a transfer that stalls.
    RetransmitTimeouts: Events;
    /// Time-outs beside outages.
    Timeouts: Events;
    /// Segment size in use.
    SegmentSizeUsed: Bytes;
    /// Value of the sysctl tcp_mtu_probing.
    MtuProbing: Share;
    /// Share of the datagrams that were lost.
    DatagramsLost: Share;
    /// Rate at which datagrams were sent.
    DatagramRate: BitsPerSecond;
    /// Rate received over the bound that stands before it.
    ReceivedOverThat: Share;
    /// Flows that lose packets.
    LossyFlows: Flows;
    /// Least share that one of these flows lost.
    LossyShareLeast: Share;
    /// Flows that lose hardly any.
    LosslessFlows: Flows;
    /// Median rate of the lossy flows over that of the others.
    LossyOverLossless: Share;
    /// Share of the small probes that were lost meanwhile.
    ProbesLostMeanwhile: Share;
    /// Stretches without an answer to a probe.
    ProbeGaps: Events;
    /// Stretches without an answer to pings.
    PingGaps: Events;
    /// Longest of these stretches.
    LongestGap: Nanoseconds;
    /// These stretches together, over the time.
    GapShare: Share;
    /// Share of the pings at rest without an answer.
    PingsLostAtRest: Share;
    /// Rate at which trains leave the bottleneck.
    TrainsLeaveBottleneck: BitsPerSecond;
    /// Rate at which trains leave the sender itself.
    TrainsLeaveSender: BitsPerSecond;
    /// Rate of a short train.
    ShortTrainRate: BitsPerSecond;
    /// Rate that passes for long.
    RatePassing: BitsPerSecond;
    /// Rate above which probes were lost without a queue.
    RateOfMeter: BitsPerSecond;
    /// Bytes that the meter lets pass at once.
    Bucket: Bytes;
    /// Packets that leave the bottleneck, short or long.
    PacketsLeave: PacketsPerSecond;
    /// Packets that a device forwards.
    PacketsForwarded: PacketsPerSecond;
    /// Packets that it lets pass at once.
    PacketsAtOnce: Packets;
    /// Largest packet that passes.
    LargestPassing: Bytes;
    /// IP packets of the flow.
    FlowPackets: Bytes;
    /// IP packets of a full segment.
    FullSegmentPackets: Bytes;
    /// Rate of one flow over the bound that stands before it.
    OneFlowOverThat: Share;
    /// Rate of several flows together over the same bound.
    SeveralFlowsOverThat: Share;
    /// Load below that bound.
    OfferedBelow: BitsPerSecond;
    /// Rate at which that load arrived.
    PassedOfIt: BitsPerSecond;
    /// Median delay of that load.
    DelayOfThose: Nanoseconds;
    /// Rate at which a higher load arrived, over that.
    MorePassedOverThat: Share;
    /// Load of probes that passed.
    LoadPassed: BitsPerSecond;
    /// Load of probes below that.
    LoadBelow: BitsPerSecond;
    /// Delay that all but one in twenty of that load had.
    DelayOfMost: Nanoseconds;
    /// Time between packets of the way back that were sent evenly.
    WayBackGap: Nanoseconds;
    /// Share of the probes lost at any load.
    ProbesLostAtAnyLoad: Share;
    /// Packets lost in a row.
    LostInARow: Packets;
    /// Share lost of the loads that passed.
    ProbesLostOfThose: Share;
    /// Probes that were lost.
    ProbesLost: Packets;
    /// Share of the probes that came late.
    ProbesLate: Share;
    /// Packets that overtook one probe.
    PacketsOvertaking: Packets;
    /// Share of the probes lost with the other way busy.
    ProbesLostBothWays: Share;
    /// Share of the probes lost one way at a time.
    ProbesLostOneWay: Share;
    /// Room of the queue.
    QueueRoom: Bytes;
    /// Room of the queue over the bandwidth-delay product.
    RoomOverBdp: Share;
    /// Equal runs of a survey: one over another, the furthest apart.
    EqualRunsApart: Share;
    /// Payload that the stated link carries.
    StatedLinkCarries: BitsPerSecond;
}
